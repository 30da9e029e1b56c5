//! The driver's symbols that `cust_raw` declares, defined as jumps through a table (see `driver.rs`).
//!
//! The list holds every function of `cust_raw`'s `extern` block, versioned names as they are; a
//! test compares it with that crate's source. A name that it does not declare fails to compile here,
//! a name that is missing here fails to link as soon as it is used.

// The symbols and their slots have the driver's own names.
#![allow(non_snake_case, non_upper_case_globals)]

use std::ffi::c_void;

use super::driver::{Slot, first_init, first_version, no_device, no_driver_text};

/// The table: every symbol's name, ending in NUL, and its slot.
pub(super) static TABLE: &[(&str, &Slot)] = slots::ALL;

/// The jump through `slot` that the symbol `name` consists of. It leaves every register and the stack
/// as the caller set them, so that one sequence serves any signature. The symbol is hidden: a shared
/// library with this crate in it must not offer the driver's functions to other libraries.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($name:ident, $slot:path) => {
        std::arch::naked_asm!(
            concat!(".hidden ", stringify!($name)),
            "jmp qword ptr [rip + {slot}]",
            slot = sym $slot
        )
    };
}

/// As above; `x16` is the register that the procedure call standard leaves to such veneers.
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($name:ident, $slot:path) => {
        std::arch::naked_asm!(
            concat!(".hidden ", stringify!($name)),
            "adrp x16, {slot}",
            "ldr x16, [x16, :lo12:{slot}]",
            "br x16",
            slot = sym $slot
        )
    };
}

/// What a slot holds before the driver is loaded.
macro_rules! first_entry {
    () => {
        no_device as *mut c_void
    };
    ($entry:ident) => {
        $entry as *mut c_void
    };
}

macro_rules! symbols {
    ($($name:ident $(= $entry:ident)?)*) => {
        pub(super) mod slots {
            use super::*;

            $(pub(in super::super) static $name: Slot = Slot::new(first_entry!($($entry)?));)*

            pub(super) static ALL: &[(&str, &Slot)] = &[$((concat!(stringify!($name), "\0"), &$name)),*];
        }

        /// The symbols themselves.
        mod entries {
            use super::slots;

            $(
                /// Jumps to the driver's function of this name.
                ///
                /// # Safety
                /// As the driver's function; declared and called with its signature by `cust_raw`.
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                unsafe extern "C" fn $name() {
                    jump!($name, slots::$name)
                }
            )*
        }

        /// Fails to compile when the list names what `cust_raw` does not declare.
        const _: () = { $(let _ = cust::sys::$name;)* };
    };
}

symbols! {
    cuGetErrorString = no_driver_text cuGetErrorName = no_driver_text cuInit = first_init
    cuDriverGetVersion = first_version cuDeviceGet cuDeviceGetCount cuDeviceGetName cuDeviceGetUuid
    cuDeviceGetUuid_v2 cuDeviceGetLuid cuDeviceTotalMem_v2 cuDeviceGetTexture1DLinearMaxWidth cuDeviceGetAttribute
    cuDeviceGetNvSciSyncAttributes cuDeviceSetMemPool cuDeviceGetMemPool cuDeviceGetDefaultMemPool
    cuFlushGPUDirectRDMAWrites cuDeviceGetProperties cuDeviceComputeCapability cuDevicePrimaryCtxRetain
    cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxSetFlags_v2 cuDevicePrimaryCtxGetState
    cuDevicePrimaryCtxReset_v2 cuDeviceGetExecAffinitySupport cuCtxCreate_v2 cuCtxCreate_v3 cuCtxDestroy_v2
    cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxSetCurrent cuCtxGetCurrent cuCtxGetDevice cuCtxGetFlags
    cuCtxSynchronize cuCtxSetLimit cuCtxGetLimit cuCtxGetCacheConfig cuCtxSetCacheConfig cuCtxGetSharedMemConfig
    cuCtxSetSharedMemConfig cuCtxGetApiVersion cuCtxGetStreamPriorityRange cuCtxResetPersistingL2Cache
    cuCtxGetExecAffinity cuCtxAttach cuCtxDetach cuModuleLoad cuModuleLoadData cuModuleLoadDataEx
    cuModuleLoadFatBinary cuModuleUnload cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleGetTexRef
    cuModuleGetSurfRef cuLinkCreate_v2 cuLinkAddData_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkDestroy
    cuMemGetInfo_v2 cuMemAlloc_v2 cuMemAllocPitch_v2 cuMemFree_v2 cuMemGetAddressRange_v2 cuMemAllocHost_v2
    cuMemFreeHost cuMemHostAlloc cuMemHostGetDevicePointer_v2 cuMemHostGetFlags cuMemAllocManaged
    cuDeviceGetByPCIBusId cuDeviceGetPCIBusId cuIpcGetEventHandle cuIpcOpenEventHandle cuIpcGetMemHandle
    cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle cuMemHostRegister_v2 cuMemHostUnregister cuMemcpy cuMemcpyPeer
    cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpyDtoA_v2 cuMemcpyAtoD_v2 cuMemcpyHtoA_v2 cuMemcpyAtoH_v2
    cuMemcpyAtoA_v2 cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2 cuMemcpy3D_v2 cuMemcpy3DPeer cuMemcpyAsync
    cuMemcpyPeerAsync cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyHtoAAsync_v2
    cuMemcpyAtoHAsync_v2 cuMemcpy2DAsync_v2 cuMemcpy3DAsync_v2 cuMemcpy3DPeerAsync cuMemsetD8_v2 cuMemsetD16_v2
    cuMemsetD32_v2 cuMemsetD2D8_v2 cuMemsetD2D16_v2 cuMemsetD2D32_v2 cuMemsetD8Async cuMemsetD16Async
    cuMemsetD32Async cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async cuArrayCreate_v2
    cuArrayGetDescriptor_v2 cuArrayGetSparseProperties cuMipmappedArrayGetSparseProperties cuArrayGetPlane
    cuArrayDestroy cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuMipmappedArrayCreate cuMipmappedArrayGetLevel
    cuMipmappedArrayDestroy cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease cuMemMap
    cuMemMapArrayAsync cuMemUnmap cuMemSetAccess cuMemGetAccess cuMemExportToShareableHandle
    cuMemImportFromShareableHandle cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle
    cuMemRetainAllocationHandle cuMemFreeAsync cuMemAllocAsync cuMemPoolTrimTo cuMemPoolSetAttribute
    cuMemPoolGetAttribute cuMemPoolSetAccess cuMemPoolGetAccess cuMemPoolCreate cuMemPoolDestroy
    cuMemAllocFromPoolAsync cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle
    cuMemPoolExportPointer cuMemPoolImportPointer cuPointerGetAttribute cuMemPrefetchAsync cuMemAdvise
    cuMemRangeGetAttribute cuMemRangeGetAttributes cuPointerSetAttribute cuPointerGetAttributes cuStreamCreate
    cuStreamCreateWithPriority cuStreamGetPriority cuStreamGetFlags cuStreamGetCtx cuStreamWaitEvent
    cuStreamAddCallback cuStreamBeginCapture_v2 cuThreadExchangeStreamCaptureMode cuStreamEndCapture
    cuStreamIsCapturing cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v2 cuStreamUpdateCaptureDependencies
    cuStreamAttachMemAsync cuStreamQuery cuStreamSynchronize cuStreamDestroy_v2 cuStreamCopyAttributes
    cuStreamGetAttribute cuStreamSetAttribute cuEventCreate cuEventRecord cuEventRecordWithFlags cuEventQuery
    cuEventSynchronize cuEventDestroy_v2 cuEventElapsedTime cuImportExternalMemory cuExternalMemoryGetMappedBuffer
    cuExternalMemoryGetMappedMipmappedArray cuDestroyExternalMemory cuImportExternalSemaphore
    cuSignalExternalSemaphoresAsync cuWaitExternalSemaphoresAsync cuDestroyExternalSemaphore cuStreamWaitValue32
    cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64 cuStreamBatchMemOp cuFuncGetAttribute
    cuFuncSetAttribute cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuFuncGetModule cuLaunchKernel
    cuLaunchCooperativeKernel cuLaunchCooperativeKernelMultiDevice cuLaunchHostFunc cuFuncSetBlockShape
    cuFuncSetSharedSize cuParamSetSize cuParamSeti cuParamSetf cuParamSetv cuLaunch cuLaunchGrid cuLaunchGridAsync
    cuParamSetTexRef cuGraphCreate cuGraphAddKernelNode cuGraphKernelNodeGetParams cuGraphKernelNodeSetParams
    cuGraphAddMemcpyNode cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams cuGraphAddMemsetNode
    cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphAddHostNode cuGraphHostNodeGetParams
    cuGraphHostNodeSetParams cuGraphAddChildGraphNode cuGraphChildGraphNodeGetGraph cuGraphAddEmptyNode
    cuGraphAddEventRecordNode cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphAddEventWaitNode
    cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent cuGraphAddExternalSemaphoresSignalNode
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphAddExternalSemaphoresWaitNode cuGraphExternalSemaphoresWaitNodeGetParams
    cuGraphExternalSemaphoresWaitNodeSetParams cuGraphAddMemAllocNode cuGraphMemAllocNodeGetParams
    cuGraphAddMemFreeNode cuGraphMemFreeNodeGetParams cuDeviceGraphMemTrim cuDeviceGetGraphMemAttribute
    cuDeviceSetGraphMemAttribute cuGraphClone cuGraphNodeFindInClone cuGraphNodeGetType cuGraphGetNodes
    cuGraphGetRootNodes cuGraphGetEdges cuGraphNodeGetDependencies cuGraphNodeGetDependentNodes
    cuGraphAddDependencies cuGraphRemoveDependencies cuGraphDestroyNode cuGraphInstantiate_v2
    cuGraphInstantiateWithFlags cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
    cuGraphExecMemsetNodeSetParams cuGraphExecHostNodeSetParams cuGraphExecChildGraphNodeSetParams
    cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent
    cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphUpload
    cuGraphLaunch cuGraphExecDestroy cuGraphDestroy cuGraphExecUpdate cuGraphKernelNodeCopyAttributes
    cuGraphKernelNodeGetAttribute cuGraphKernelNodeSetAttribute cuGraphDebugDotPrint cuUserObjectCreate
    cuUserObjectRetain cuUserObjectRelease cuGraphRetainUserObject cuGraphReleaseUserObject
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags
    cuOccupancyAvailableDynamicSMemPerBlock cuTexRefSetArray cuTexRefSetMipmappedArray cuTexRefSetAddress_v2
    cuTexRefSetAddress2D_v3 cuTexRefSetFormat cuTexRefSetAddressMode cuTexRefSetFilterMode
    cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp cuTexRefSetMaxAnisotropy
    cuTexRefSetBorderColor cuTexRefSetFlags cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetMipmappedArray
    cuTexRefGetAddressMode cuTexRefGetFilterMode cuTexRefGetFormat cuTexRefGetMipmapFilterMode
    cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp cuTexRefGetMaxAnisotropy cuTexRefGetBorderColor
    cuTexRefGetFlags cuTexRefCreate cuTexRefDestroy cuSurfRefSetArray cuSurfRefGetArray cuTexObjectCreate
    cuTexObjectDestroy cuTexObjectGetResourceDesc cuTexObjectGetTextureDesc cuTexObjectGetResourceViewDesc
    cuSurfObjectCreate cuSurfObjectDestroy cuSurfObjectGetResourceDesc cuDeviceCanAccessPeer cuCtxEnablePeerAccess
    cuCtxDisablePeerAccess cuDeviceGetP2PAttribute cuGraphicsUnregisterResource cuGraphicsSubResourceGetMappedArray
    cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer_v2
    cuGraphicsResourceSetMapFlags_v2 cuGraphicsMapResources cuGraphicsUnmapResources cuGetProcAddress
    cuGetExportTable cuProfilerInitialize cuProfilerStart cuProfilerStop
}
