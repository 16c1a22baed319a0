// How jemalloc, the allocator of the programs, begins; jemalloc(3) reads this variable, and MALLOC_CONF of the
// environment after it. Large pages where the kernel gives them on demand: the columns of a large replay are hundreds
// of megabytes, and being given these 4 KiB at a time took an eighth of its processor time.
extern "C" {
extern const char* malloc_conf;
[[gnu::visibility("default")]] const char* malloc_conf = "thp:always";
}
