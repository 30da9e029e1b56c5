/* A stand-in for libcuda.so.1, to try the host layer where there is no GPU. "Device" memory is host
 * memory, zeros at first; work runs when it is queued (or is kept while a stream captures); the two
 * kernels of smoke.ptx are C functions, and any other kernel that a module names does nothing. It is
 * strict where the real driver is: no call without a current context, no handle that was not made
 * here, no synchronising during a capture.
 *
 * The environment sets what it claims to be: FAKE_VERSION, FAKE_INIT (the result of cuInit),
 * FAKE_DEVICES, FAKE_CAPABILITY (75 for 7.5). */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, CAPTURE_UNSUPPORTED = 900
};
enum { FREE_BYTES = 1 << 30, BLOCK_SHARED = 64 << 10, MAX_THREADS = 1024, MAX_DEPTH = 8, MAX_OPS = 64, MAX_PARAMS = 4 };

typedef void (*kernel)(void **params);
typedef struct { kernel run; uint64_t params[MAX_PARAMS]; } op;
typedef struct { int kind; int count; op ops[MAX_OPS]; } graph;
typedef struct { int kind; graph *captured; } stream;
typedef struct { int kind; int timing; stream *capturing; } event;
typedef struct { int kind; kernel run; int shared; } function;
enum { GRAPH = 0x6a01, STREAM = 0x6a02, EVENT = 0x6a03, FUNCTION = 0x6a04 };

static int initialised;
static int primary; /* its address is the context */
static _Thread_local void *contexts[MAX_DEPTH];
static _Thread_local int depth;
static atomic_long live; /* buffers, streams, events, modules and graphs not yet destroyed */

static int setting(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

#define CHECK_CONTEXT if (!depth || contexts[depth - 1] != &primary) return INVALID_CONTEXT
#define CHECK_HANDLE(handle, KIND) if (!(handle) || (handle)->kind != (KIND)) return INVALID_HANDLE

long fake_live(void) { return live; }
int fake_depth(void) { return depth; }

result cuGetErrorString(int error, const char **text) { (void)error; *text = "in the fake driver's words"; return SUCCESS; }
result cuGetErrorName(int error, const char **text) {
    switch (error) {
    case INVALID_PTX: *text = "CUDA_ERROR_INVALID_PTX"; return SUCCESS;
    case NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
    case CAPTURE_UNSUPPORTED: *text = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return SUCCESS;
    case 1234: *text = NULL; return INVALID_VALUE; /* as for codes that a driver does not know */
    default: *text = "CUDA_ERROR_OTHER"; return SUCCESS;
    }
}
result cuInit(unsigned flags) {
    int code = setting("FAKE_INIT", SUCCESS);
    if (flags) return INVALID_VALUE;
    if (code == SUCCESS) initialised = 1;
    return code;
}
result cuDriverGetVersion(int *version) { *version = setting("FAKE_VERSION", 12080); return SUCCESS; }
result cuDeviceGetCount(int *count) { if (!initialised) return NOT_INITIALIZED; *count = setting("FAKE_DEVICES", 1); return SUCCESS; }
result cuDeviceGet(int *device, int ordinal) {
    if (!initialised) return NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= setting("FAKE_DEVICES", 1)) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}
result cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Fake GPU %d", device); return SUCCESS; }
result cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 2 * (size_t)FREE_BYTES; return SUCCESS; }
result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    int capability = setting("FAKE_CAPABILITY", 75);
    switch (attribute) {
    case 16: *value = 40; return SUCCESS;
    case 75: *value = capability / 10; return SUCCESS;
    case 76: *value = capability % 10; return SUCCESS;
    case 97: *value = BLOCK_SHARED; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

result cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &primary; return SUCCESS; }
result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
result cuCtxGetCurrent(void **context) { *context = depth ? contexts[depth - 1] : NULL; return SUCCESS; }
result cuCtxSetCurrent(void *context) {
    if (!context) { if (depth) depth--; return SUCCESS; }
    if (!depth) depth = 1;
    contexts[depth - 1] = context;
    return SUCCESS;
}
result cuCtxPushCurrent_v2(void *context) {
    if (depth == MAX_DEPTH) return INVALID_VALUE;
    contexts[depth++] = context;
    return SUCCESS;
}
result cuCtxPopCurrent_v2(void **context) {
    if (!depth) return INVALID_CONTEXT;
    *context = contexts[--depth];
    return SUCCESS;
}
result cuCtxSynchronize(void) { CHECK_CONTEXT; return SUCCESS; }
result cuCtxGetStreamPriorityRange(int *least, int *greatest) { CHECK_CONTEXT; *least = 0; *greatest = -5; return SUCCESS; }

result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    CHECK_CONTEXT;
    *free_bytes = FREE_BYTES;
    *total = 2 * (size_t)FREE_BYTES;
    return SUCCESS;
}
static result allocate(void **pointer, size_t bytes) {
    CHECK_CONTEXT;
    if (bytes > FREE_BYTES) return OUT_OF_MEMORY;
    *pointer = calloc(1, bytes);
    live++;
    return SUCCESS;
}
static result release(void *pointer) { CHECK_CONTEXT; free(pointer); live--; return SUCCESS; }
result cuMemAlloc_v2(uint64_t *pointer, size_t bytes) { return allocate((void **)pointer, bytes); }
result cuMemFree_v2(uint64_t pointer) { return release((void *)pointer); }
result cuMemAllocHost_v2(void **pointer, size_t bytes) { return allocate(pointer, bytes); }
result cuMemFreeHost(void *pointer) { return release(pointer); }

static void add(void **params) {
    uint32_t *sum = *(uint32_t **)params[0], *a = *(uint32_t **)params[1], *b = *(uint32_t **)params[2];
    for (uint32_t i = 0; i < *(uint32_t *)params[3]; i++) sum[i] = a[i] + b[i];
}
static void reverse(void **params) {
    uint32_t *target = *(uint32_t **)params[0], *source = *(uint32_t **)params[1], count = *(uint32_t *)params[2];
    for (uint32_t i = 0; i < count; i++) target[i] = source[count - 1 - i];
}
static void nothing(void **params) { (void)params; }
static void fill(void **params) { memset(*(void **)params[0], (int)*(uint64_t *)params[1], *(uint64_t *)params[2]); }

result cuModuleLoadDataEx(void **module, const char *text, unsigned count, int *options, void **values) {
    CHECK_CONTEXT;
    if (strstr(text, "bogus")) {
        /* Options 5 and 6: the log's buffer and its size. */
        if (count == 2 && options[0] == 5 && options[1] == 6)
            snprintf(values[0], (size_t)values[1], "ptxas fatal: unknown instruction 'bogus'");
        return INVALID_PTX;
    }
    *module = strdup(text);
    live++;
    return SUCCESS;
}
result cuModuleUnload(void *module) { return release(module); }
result cuModuleGetFunction(function **found, const char *module, const char *name) {
    static function functions[] = {
        { FUNCTION, add, 48 << 10 }, { FUNCTION, reverse, 48 << 10 }, { FUNCTION, nothing, 48 << 10 }
    };
    CHECK_CONTEXT;
    if (!strstr(module, name)) return NOT_FOUND;
    *found = &functions[!strcmp(name, "vector_add") ? 0 : !strcmp(name, "shared_reverse") ? 1 : 2];
    return SUCCESS;
}
result cuFuncGetAttribute(int *value, int attribute, function *f) {
    CHECK_CONTEXT;
    CHECK_HANDLE(f, FUNCTION);
    *value = attribute == 0 ? MAX_THREADS : attribute == 4 ? 16 : 0;
    return SUCCESS;
}
result cuFuncSetAttribute(function *f, int attribute, int value) {
    CHECK_CONTEXT;
    CHECK_HANDLE(f, FUNCTION);
    if (attribute != 8 || value > BLOCK_SHARED) return INVALID_VALUE;
    f->shared = value;
    return SUCCESS;
}
result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, function *f, int threads, size_t shared) {
    CHECK_CONTEXT;
    CHECK_HANDLE(f, FUNCTION);
    *blocks = threads <= MAX_THREADS && shared <= (size_t)f->shared;
    return SUCCESS;
}

result cuStreamCreateWithPriority(stream **made, unsigned flags, int priority) {
    CHECK_CONTEXT;
    if (flags != 1 || priority > 0 || priority < -5) return INVALID_VALUE;
    *made = calloc(1, sizeof(stream));
    (*made)->kind = STREAM;
    live++;
    return SUCCESS;
}
result cuStreamDestroy_v2(stream *s) { CHECK_HANDLE(s, STREAM); s->kind = 0; return release(s); }
result cuStreamSynchronize(stream *s) {
    CHECK_CONTEXT;
    CHECK_HANDLE(s, STREAM);
    return s->captured ? CAPTURE_UNSUPPORTED : SUCCESS;
}
result cuEventCreate(event **made, unsigned flags) {
    CHECK_CONTEXT;
    *made = calloc(1, sizeof(event));
    (*made)->kind = EVENT;
    (*made)->timing = flags != 2;
    live++;
    return SUCCESS;
}
result cuEventDestroy_v2(event *e) { CHECK_HANDLE(e, EVENT); e->kind = 0; return release(e); }
result cuEventRecord(event *e, stream *s) {
    CHECK_CONTEXT;
    CHECK_HANDLE(e, EVENT);
    CHECK_HANDLE(s, STREAM);
    e->capturing = s->captured ? s : NULL;
    return SUCCESS;
}
/* A stream that waits for an event of a capture joins the capture. */
result cuStreamWaitEvent(stream *s, event *e, unsigned flags) {
    CHECK_CONTEXT;
    CHECK_HANDLE(e, EVENT);
    CHECK_HANDLE(s, STREAM);
    if (flags) return INVALID_VALUE;
    if (e->capturing) s->captured = e->capturing->captured;
    return SUCCESS;
}
result cuEventQuery(event *e) { CHECK_CONTEXT; CHECK_HANDLE(e, EVENT); return SUCCESS; }
result cuEventSynchronize(event *e) { CHECK_CONTEXT; CHECK_HANDLE(e, EVENT); return SUCCESS; }
result cuEventElapsedTime(float *ms, event *start, event *end) {
    CHECK_CONTEXT;
    if (!start->timing || !end->timing) return INVALID_HANDLE;
    *ms = 0.5f;
    return SUCCESS;
}

#define CHECK_COPY CHECK_CONTEXT; CHECK_HANDLE(s, STREAM); if (s->captured) return CAPTURE_UNSUPPORTED
result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, stream *s) { CHECK_COPY; memcpy((void *)to, from, bytes); return SUCCESS; }
result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, stream *s) { CHECK_COPY; memcpy(to, (void *)from, bytes); return SUCCESS; }
result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, stream *s) { CHECK_COPY; memcpy((void *)to, (void *)from, bytes); return SUCCESS; }
typedef struct {
    size_t src_x, src_y; int src_type; const char *src_host; uint64_t src_device; void *src_array; size_t src_pitch;
    size_t dst_x, dst_y; int dst_type; char *dst_host; uint64_t dst_device; void *dst_array; size_t dst_pitch;
    size_t width, height;
} copy_2d;
result cuMemcpy2DAsync_v2(const copy_2d *c, stream *s) {
    CHECK_COPY;
    if ((c->src_type != 1 && c->src_type != 2) || c->dst_type != 2 || c->src_x || c->src_y || c->dst_x || c->dst_y) return INVALID_VALUE;
    if (c->width > c->src_pitch || c->width > c->dst_pitch) return INVALID_VALUE;
    const char *from = c->src_type == 1 ? c->src_host : (const char *)c->src_device;
    for (size_t y = 0; y < c->height; y++)
        memcpy((char *)c->dst_device + y * c->dst_pitch, from + y * c->src_pitch, c->width);
    return SUCCESS;
}

result cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, stream *s, void **params, void **extra) {
    CHECK_CONTEXT;
    CHECK_HANDLE(f, FUNCTION);
    CHECK_HANDLE(s, STREAM);
    if (!gx || !gy || !gz || bx * by * bz > MAX_THREADS || shared > (unsigned)f->shared || extra) return INVALID_VALUE;
    if (!s->captured) { f->run(params); return SUCCESS; }
    op *kept = &s->captured->ops[s->captured->count++];
    kept->run = f->run;
    int count = f->run == add ? 4 : f->run == reverse ? 3 : 0;
    for (int i = 0; i < count; i++) {
        int last = i == count - 1;
        kept->params[i] = last ? *(uint32_t *)params[i] : *(uint64_t *)params[i];
    }
    return SUCCESS;
}
result cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, stream *s) {
    CHECK_CONTEXT;
    CHECK_HANDLE(s, STREAM);
    if (!s->captured) { memset((void *)to, value, bytes); return SUCCESS; }
    s->captured->ops[s->captured->count++] = (op){ fill, { to, value, bytes } };
    return SUCCESS;
}
result cuStreamBeginCapture_v2(stream *s, int mode) {
    CHECK_CONTEXT;
    CHECK_HANDLE(s, STREAM);
    if (s->captured || mode != 1) return INVALID_VALUE;
    s->captured = calloc(1, sizeof(graph));
    s->captured->kind = GRAPH;
    live++;
    return SUCCESS;
}
result cuStreamEndCapture(stream *s, graph **made) {
    CHECK_CONTEXT;
    CHECK_HANDLE(s, STREAM);
    if (!s->captured) return INVALID_VALUE;
    *made = s->captured;
    s->captured = NULL;
    return SUCCESS;
}
result cuGraphDestroy(graph *g) { CHECK_HANDLE(g, GRAPH); return release(g); }
result cuGraphInstantiateWithFlags(graph **made, graph *from, unsigned long long flags) {
    CHECK_CONTEXT;
    CHECK_HANDLE(from, GRAPH);
    if (flags) return INVALID_VALUE;
    *made = malloc(sizeof(graph));
    **made = *from;
    live++;
    return SUCCESS;
}
result cuGraphExecDestroy(graph *g) { CHECK_HANDLE(g, GRAPH); return release(g); }
result cuGraphLaunch(graph *g, stream *s) {
    CHECK_CONTEXT;
    CHECK_HANDLE(g, GRAPH);
    CHECK_HANDLE(s, STREAM);
    for (int i = 0; i < g->count; i++) {
        void *params[MAX_PARAMS];
        for (int p = 0; p < MAX_PARAMS; p++) params[p] = &g->ops[i].params[p];
        g->ops[i].run(params);
    }
    return SUCCESS;
}
