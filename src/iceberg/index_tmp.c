#include "iceberg/index.h"
#include <string.h>
typedef struct E { Hash128 h; int file; uint32_t row; } E;
typedef struct F { Str name; bool gone; } F;
struct Index { Buf e; Buf files; };
struct IndexBuild { Index *i; int file; uint32_t row; };
bool index_open(const char *folder, const char *u, Index **out, Error *err) { (void)folder;(void)u;(void)err; *out = xcalloc(1,sizeof(Index)); return true; }
void index_close(Index *i) { if(!i) return; buf_done(&i->e); buf_done(&i->files); free(i); }
static int find(const Index *i, Str n) { for (size_t k=0;k<BUF_COUNT(&i->files,F);k++) if (!BUF_AT(&i->files,F,k).gone && str_eq(BUF_AT(&i->files,F,k).name,n)) return (int)k; return -1; }
bool index_has_file(const Index *i, Str n) { return find(i,n)>=0; }
static int addf(Index *i, Str n) { F f={.name={memcpy(xcalloc(1,n.len+1),n.ptr,n.len),n.len}}; BUF_PUSH(&i->files,F,f); return (int)BUF_COUNT(&i->files,F)-1; }
bool index_add_file(Index *i, Str n, const Hash128 *k, size_t r, Error *err) { (void)err; int f=addf(i,n); for(size_t x=0;x<r;x++){E e={k[x],f,(uint32_t)x};BUF_PUSH(&i->e,E,e);} return true; }
bool index_build_begin(Index *i, Str n, IndexBuild **out, Error *err){(void)err; *out=xcalloc(1,sizeof(IndexBuild)); (*out)->i=i;(*out)->file=addf(i,n);return true;}
bool index_build_add(IndexBuild *b,const Hash128 *k,size_t r,Error *err){(void)err; for(size_t x=0;x<r;x++){E e={k[x],b->file,b->row++};BUF_PUSH(&b->i->e,E,e);} return true;}
bool index_build_end(IndexBuild *b,Error *err){(void)err;free(b);return true;}
void index_build_abort(IndexBuild *b){ BUF_AT(&b->i->files,F,b->file).gone=true; free(b);}
void index_remove_file(Index *i, Str n){int f=find(i,n); if(f>=0) BUF_AT(&i->files,F,f).gone=true;}
bool index_lookup(Index *i,const Hash128 *k,size_t c,Buf *out,Error *err){(void)err; for(size_t p=0;p<c;p++) for(size_t x=BUF_COUNT(&i->e,E);x-->0;){E e=BUF_AT(&i->e,E,x); if(hash128_eq(e.h,k[p])&&!BUF_AT(&i->files,F,e.file).gone){IndexHit h={p,e.file,e.row};BUF_PUSH(out,IndexHit,h);}} return true;}
Str index_file_name(const Index *i,int f){return BUF_AT(&i->files,F,f).gone?STR_NULL:BUF_AT(&i->files,F,f).name;}
bool index_save(Index *i,Error *err){(void)i;(void)err;return true;}
IndexStats index_stats(const Index *i){return (IndexStats){.files=BUF_COUNT(&i->files,F)};}
