// Read an Iceberg table with iceberg-go and write it to stdout as an Arrow stream.
//
//	igscan METADATA_JSON [S3_ENDPOINT KEY SECRET]
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/io"
	_ "github.com/apache/iceberg-go/io/gocloud"
	"github.com/apache/iceberg-go/table"
)

func read() error {
	ctx, settings := context.Background(), iceberg.Properties{}
	if len(os.Args) > 4 {
		settings = iceberg.Properties{
			"s3.endpoint": os.Args[2], "s3.access-key-id": os.Args[3],
			"s3.secret-access-key": os.Args[4], "s3.region": "us-east-1",
			"s3.force-virtual-addressing": "false",
		}
	}
	opened, err := table.NewFromLocation(ctx, table.Identifier{"lake", "table"}, os.Args[1],
		io.LoadFSFunc(settings, os.Args[1]), nil)
	if err != nil {
		return err
	}
	rows, err := opened.Scan().ToArrowTable(ctx)
	if err != nil {
		return err
	}
	defer rows.Release()
	out := ipc.NewWriter(os.Stdout, ipc.WithSchema(rows.Schema()))
	records := array.NewTableReader(rows, 0)
	defer records.Release()
	for records.Next() {
		if err := out.Write(records.Record()); err != nil {
			return err
		}
	}
	return out.Close()
}

func main() {
	if err := read(); err != nil {
		fmt.Fprintln(os.Stderr, "igscan:", err)
		os.Exit(1)
	}
}
