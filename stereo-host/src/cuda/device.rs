//! The machine's GPUs, and why there are none.

use std::{ffi::c_int, fmt, sync::OnceLock};

use cust::{
    CudaApiVersion, CudaFlags,
    device::{Device, DeviceAttribute},
    sys,
};
use serde::Serialize;

use super::{
    call::{cu, cu_code, describe, describe_cust, named},
    driver,
    ptx::Ptx,
};
use crate::{Backend, Error, PtxSource, Result};

/// The lowest compute capability that the kernels are written for (Turing).
pub const LOWEST_COMPUTE_CAPABILITY: (u32, u32) = (7, 5);

/// A version of CUDA, as drivers count what they support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CudaVersion {
    /// The 12 of 12.8.
    pub major: u32,
    /// The 8 of 12.8.
    pub minor: u32,
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// Its number in the driver's order, from 0.
    pub ordinal: u32,
    /// Its name, for example `NVIDIA H200`.
    pub name: String,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub total_memory: u64,
    /// Bytes of shared memory that one block can have when it asks for all of it.
    pub shared_memory_per_block: u32,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.compute_capability;
        write!(f, "{} (compute capability {major}.{minor})", self.name)
    }
}

/// What the driver found: its version and the machine's GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// The newest CUDA version that the driver supports.
    pub version: CudaVersion,
    /// All GPUs that the driver shows to this process (`CUDA_VISIBLE_DEVICES` hides some); never empty.
    pub devices: Vec<DeviceInfo>,
}

impl Driver {
    /// Starts the driver, once per process.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason: no driver, no GPU, or a driver that does not start.
    pub fn get() -> Result<&'static Self> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        DRIVER.get_or_init(Self::start).as_ref().map_err(|reason| unavailable(reason.clone()))
    }

    fn start() -> Result<Self, String> {
        driver::load().map_err(|reason| format!("no NVIDIA driver is installed ({reason})"))?;
        let version = CudaApiVersion::get()
            .map(|version| CudaVersion { major: version.major() as u32, minor: version.minor() as u32 })
            .map_err(|error| format!("the NVIDIA driver does not start: {}", describe_cust(error)))?;
        let no_gpu = || format!("the NVIDIA driver (CUDA {version}) finds no GPU");
        // SAFETY: `cuInit` may be called at any time.
        match unsafe { cu_code!(cuInit(CudaFlags::empty().bits())) } {
            0 => {}
            code if code == sys::cudaError_enum::CUDA_ERROR_NO_DEVICE as c_int => return Err(no_gpu()),
            code => return Err(format!("the NVIDIA driver (CUDA {version}) does not start: {}", describe(code))),
        }
        let devices = list_devices().map_err(|error| format!("cannot list the GPUs: {error}"))?;
        if devices.is_empty() {
            return Err(no_gpu());
        }
        Ok(Self { version, devices })
    }

    /// GPU `ordinal`; without one, the first.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the machine has no such GPU, [`Error::Unavailable`] when its compute
    /// capability is below [`LOWEST_COMPUTE_CAPABILITY`].
    pub fn device(&self, ordinal: Option<u32>) -> Result<&DeviceInfo> {
        let ordinal = ordinal.unwrap_or(0);
        let device = self.devices.get(ordinal as usize).ok_or_else(|| {
            let names: Vec<_> = self.devices.iter().map(|device| format!("{} = {device}", device.ordinal)).collect();
            Error::parameter("device", ordinal, names.join(", "))
        })?;
        if device.compute_capability < LOWEST_COMPUTE_CAPABILITY {
            let (major, minor) = LOWEST_COMPUTE_CAPABILITY;
            return Err(unavailable(format!(
                "GPU {ordinal}, {device}, is too old: at least {major}.{minor} is needed"
            )));
        }
        Ok(device)
    }
}

/// The version of the installed driver package, for example `570.86.15`, where the system tells.
pub(crate) fn driver_package() -> Option<String> {
    let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(text.trim().to_owned()).filter(|version| !version.is_empty())
}

/// The GPU `ordinal` (without one, the first) and the PTX from `source` for it.
///
/// # Errors
/// As [`Driver::get`], [`Driver::device`] and [`PtxSource::choose`].
pub fn choose(ordinal: Option<u32>, source: &PtxSource) -> Result<(&'static DeviceInfo, Ptx)> {
    let driver = Driver::get()?;
    let device = driver.device(ordinal)?;
    let ptx = source.choose(device.compute_capability, driver.version)?;
    Ok((device, ptx))
}

/// As [`availability_with`], for [`PtxSource::Environment`].
///
/// # Errors
/// As [`availability_with`].
pub fn availability(ordinal: Option<u32>) -> Result<()> {
    availability_with(ordinal, &PtxSource::Environment)
}

/// Whether [`choose`] would succeed.
///
/// # Errors
/// [`Error::Unavailable`] says why not; it also wraps a folder that cannot be read.
pub fn availability_with(ordinal: Option<u32>, source: &PtxSource) -> Result<()> {
    choose(ordinal, source).map(drop).map_err(|error| match error {
        Error::Unavailable { .. } | Error::Parameter { .. } => error,
        other => unavailable(other.to_string()),
    })
}

fn unavailable(reason: String) -> Error {
    Error::Unavailable { backend: Backend::Cuda.name(), reason }
}

fn list_devices() -> Result<Vec<DeviceInfo>> {
    let count = Device::num_devices().map_err(named("cuDeviceGetCount"))?;
    (0..count).map(describe_device).collect()
}

fn describe_device(ordinal: u32) -> Result<DeviceInfo> {
    let device = Device::get_device(ordinal).map_err(named("cuDeviceGet"))?;
    let attribute =
        |which| device.get_attribute(which).map(|value| value as u32).map_err(named("cuDeviceGetAttribute"));
    let mut shared_memory = 0;
    let opt_in = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    // SAFETY: the driver writes one integer; the handle comes from the driver.
    unsafe { cu!(cuDeviceGetAttribute(&raw mut shared_memory, opt_in, device.as_raw())) }?;
    Ok(DeviceInfo {
        ordinal,
        name: device.name().map_err(named("cuDeviceGetName"))?,
        compute_capability: (
            attribute(DeviceAttribute::ComputeCapabilityMajor)?,
            attribute(DeviceAttribute::ComputeCapabilityMinor)?,
        ),
        multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
        total_memory: device.total_memory().map_err(named("cuDeviceTotalMem"))? as u64,
        shared_memory_per_block: shared_memory as u32,
    })
}
