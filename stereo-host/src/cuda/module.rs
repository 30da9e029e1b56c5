//! Loaded PTX and its kernels.

use std::{
    collections::HashMap,
    ffi::{CString, c_int, c_void},
    fmt::Write,
    mem::ManuallyDrop,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use cust::{
    error::CudaError,
    module::Module,
    sys::{self, CUfunction, CUfunction_attribute as Attribute, CUjit_option as JitOption},
};

use super::{
    call::{cu, cu_code, describe, describe_cust, named},
    context::CudaContext,
    ptx::Ptx,
    stream::Stream,
};
use crate::{Error, Result};

/// Shared memory that a block may have without asking for more.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

/// Bytes for the compiler's log; it stops writing there.
const JIT_LOG_BYTES: usize = 16 << 10;

/// The blocks of a launch, their threads and their dynamic shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub shared: u32,
}

/// What the compiler made of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelInfo {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of static shared memory per block.
    pub static_shared: u32,
    /// Bytes of local memory per thread: spills and stack.
    pub local: u32,
    /// The most threads that a block can have.
    pub max_threads: u32,
}

/// PTX in a context.
pub(super) struct Loaded {
    context: CudaContext,
    ptx: Ptx,
    module: ManuallyDrop<Module>,
    functions: Mutex<HashMap<String, Arc<Function>>>,
}

struct Function {
    raw: CUfunction,
    name: String,
    info: KernelInfo,
    /// The largest dynamic shared memory that was asked for.
    shared: AtomicU32,
}

// SAFETY: the driver API may be called with a function's handle from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Loaded {
    pub(super) fn new(context: CudaContext, ptx: &Ptx) -> Result<Self> {
        let _current = context.enter()?;
        let text = CString::new(ptx.text()).map_err(|_| {
            // `Ptx::parse` has refused it.
            Error::Cuda { call: "cuModuleLoadDataEx", message: "the PTX contains a NUL".to_owned() }
        })?;
        let module = Module::from_ptx_cstr(&text, &[]).map_err(|error| explain(error, &text, ptx, context))?;
        Ok(Self { context, ptx: ptx.clone(), module: ManuallyDrop::new(module), functions: Mutex::default() })
    }

    pub(super) fn ptx(&self) -> &Ptx {
        &self.ptx
    }

    fn function(&self, name: &str) -> Result<Arc<Function>> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name) {
            return Ok(Arc::clone(function));
        }
        let _current = self.context.enter()?;
        let missing = |message| Error::Cuda { call: "cuModuleGetFunction", message };
        let raw = self
            .module
            .get_function(name)
            .map_err(|error| missing(format!("kernel `{name}`: {}", describe_cust(error))))?
            .to_raw();
        let function = Arc::new(Function { raw, name: name.to_owned(), info: info(raw)?, shared: AtomicU32::new(0) });
        functions.insert(name.to_owned(), Arc::clone(&function));
        Ok(function)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: dropped once, here; without a context there is no module left to unload.
            unsafe { ManuallyDrop::drop(&mut self.module) };
        }
    }
}

/// The kernels of one PTX image on one GPU; a handle to clone.
#[derive(Clone)]
pub struct Kernels(Arc<Loaded>);

impl Kernels {
    pub(super) fn new(loaded: Arc<Loaded>) -> Self {
        Self(loaded)
    }

    /// The kernel of this entry name; the handle is looked up once.
    ///
    /// # Errors
    /// [`Error::Cuda`] when the PTX has no such entry.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Ok(Kernel { function: self.0.function(name)?, loaded: Arc::clone(&self.0) })
    }

    /// The context in which they are loaded.
    pub fn context(&self) -> CudaContext {
        self.0.context
    }
}

/// A kernel, ready to launch.
#[derive(Clone)]
pub struct Kernel {
    function: Arc<Function>,
    loaded: Arc<Loaded>,
}

impl Kernel {
    /// The entry's name.
    pub fn name(&self) -> &str {
        &self.function.name
    }

    /// What the compiler made of it.
    pub fn info(&self) -> KernelInfo {
        self.function.info
    }

    /// How many blocks of `threads` threads and `shared` bytes of dynamic shared memory an SM holds at once.
    ///
    /// # Errors
    /// The driver's; too much shared memory.
    pub fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32> {
        let _current = self.loaded.context.enter()?;
        self.allow_shared(shared)?;
        let mut blocks = 0;
        // SAFETY: the driver writes one integer; the module is loaded while `self` lives.
        unsafe {
            cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function.raw,
                threads as c_int,
                shared as usize
            ))
        }?;
        Ok(blocks as u32)
    }

    /// Starts the kernel on `stream` and returns at once.
    ///
    /// # Safety
    /// `params` points to one value per parameter of the entry, of its type, in its order. The device
    /// memory that the kernel reaches through them is valid, and no other work that is not ordered
    /// with this launch touches what it writes, until it has run.
    ///
    /// # Errors
    /// The driver's, with the kernel's name and the configuration; too much shared memory.
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, params: &[*mut c_void]) -> Result<()> {
        let _current = self.loaded.context.enter()?;
        self.allow_shared(config.shared)?;
        let LaunchConfig { grid, block, shared } = config;
        // SAFETY: the caller answers for the parameters; the driver reads them before it returns.
        let code = unsafe {
            cu_code!(cuLaunchKernel(
                self.function.raw,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared,
                stream.raw(),
                params.as_ptr().cast_mut(),
                std::ptr::null_mut()
            ))
        };
        match code {
            0 => Ok(()),
            _ => Err(self.refused("cuLaunchKernel", &format!("{}; {config:?}", describe(code)))),
        }
    }

    /// Blocks get more than 48 KiB of shared memory only when that was asked for.
    fn allow_shared(&self, dynamic: u32) -> Result<()> {
        let fixed = self.function.info.static_shared;
        let limit = self.loaded.context.device().shared_memory_per_block;
        let total = fixed.saturating_add(dynamic);
        if total <= SHARED_WITHOUT_ASKING || dynamic <= self.function.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        if total > limit {
            let message =
                format!("{dynamic} bytes of dynamic and {fixed} of static shared memory, a block has {limit}");
            return Err(self.refused("cuFuncSetAttribute", &message));
        }
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // All that a block can have, so that threads that ask for different amounts do not undo each
        // other's call.
        // SAFETY: the module is loaded while `self` lives.
        unsafe { cu!(cuFuncSetAttribute(self.function.raw, attribute, (limit - fixed) as c_int)) }?;
        self.function.shared.store(limit - fixed, Ordering::Relaxed);
        Ok(())
    }

    fn refused(&self, call: &'static str, message: &str) -> Error {
        Error::Cuda { call, message: format!("kernel `{}`: {message}", self.function.name) }
    }
}

fn info(function: CUfunction) -> Result<KernelInfo> {
    let get = |attribute| {
        let mut value = 0;
        // SAFETY: the driver writes one integer; the handle was just looked up.
        unsafe { cu!(cuFuncGetAttribute(&raw mut value, attribute, function)) }.map(|()| value as u32)
    };
    Ok(KernelInfo {
        registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        static_shared: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        local: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        max_threads: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
    })
}

/// Loads PTX that was refused once more, as `cust` has no call that returns the compiler's log.
fn explain(refused: CudaError, text: &CString, ptx: &Ptx, context: CudaContext) -> Error {
    let mut log = vec![0u8; JIT_LOG_BYTES];
    let mut options = [JitOption::CU_JIT_ERROR_LOG_BUFFER, JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // The driver takes the size in place of a pointer to it.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(JIT_LOG_BYTES)];
    let mut module: sys::CUmodule = std::ptr::null_mut();
    // SAFETY: two options with a value each; the log's buffer has the stated size; the text ends in NUL.
    let code = unsafe {
        cu_code!(cuModuleLoadDataEx(
            &raw mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr()
        ))
    };
    if code == 0 {
        // SAFETY: just loaded, and nobody has its handle.
        let _ = unsafe { cu!(cuModuleUnload(module)) };
        return named("cuModuleLoadDataEx")(refused);
    }
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let log = String::from_utf8_lossy(&log[..end]);
    let mut message = format!("PTX for sm_{} on {}: {}", ptx.arch(), context.device(), describe(code));
    if !log.trim().is_empty() {
        // Writing to a String does not fail.
        let _ = write!(message, "\n{}", log.trim());
    }
    Error::Cuda { call: "cuModuleLoadDataEx", message }
}
