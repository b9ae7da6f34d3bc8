/**
 * Describes a function of the C API: its index in `OrtApi`, its result type, and its argument types in koffi's
 * notation.
 */
export type CFunction = readonly [
  index: number,
  result: 'status' | 'void' | 'int' | 'uint32_t' | 'string' | 'pointer',
  args: string,
];

/**
 * Version of onnxruntime from whose header the indices below were read. Later versions only append functions, but no
 * other version was tested.
 */
export const ORT_VERSION = '1.30.0';

/** API version to request (`ORT_API_VERSION`): the first that has every function below. */
export const API_VERSION = 24;

/** Type of file names (`ORTCHAR_T`), which are UTF-16 on Windows. */
const PATH = process.platform === 'win32' ? 'const char16_t *' : 'const char *';
const OUT = '_Out_ void **';
const COUNT = '_Out_ size_t *';

/**
 * Functions that Assay calls. Source: onnxruntime_c_api.h, 1.30 (`struct OrtApi`; the index is the position of the
 * member).
 */
export const C_FUNCTIONS = {
  GetErrorCode: [1, 'int', 'void *'],
  GetErrorMessage: [2, 'string', 'void *'],
  CreateEnv: [3, 'status', `int, const char *, ${OUT}`],
  CreateSession: [7, 'status', `void *, ${PATH}, void *, ${OUT}`],
  Run: [9, 'status', 'void *, void *, const char **, void **, size_t, const char **, size_t, void **'],
  CreateSessionOptions: [10, 'status', OUT],
  SetSessionLogSeverityLevel: [22, 'status', 'void *, int'],
  SetIntraOpNumThreads: [24, 'status', 'void *, int'],
  CreateTensorWithDataAsOrtValue: [49, 'status', `void *, void *, size_t, int64_t *, size_t, int, ${OUT}`],
  CreateCpuMemoryInfo: [69, 'status', `int, int, ${OUT}`],
  ReleaseEnv: [92, 'void', 'void *'],
  ReleaseStatus: [93, 'void', 'void *'],
  ReleaseMemoryInfo: [94, 'void', 'void *'],
  ReleaseSession: [95, 'void', 'void *'],
  ReleaseValue: [96, 'void', 'void *'],
  ReleaseSessionOptions: [100, 'void', 'void *'],
  AddSessionConfigEntry: [130, 'status', 'void *, const char *, const char *'],
  GetKeyValuePairs: [298, 'void', `void *, ${OUT}, ${OUT}, ${COUNT}`],
  RegisterExecutionProviderLibrary: [301, 'status', `void *, const char *, ${PATH}`],
  UnregisterExecutionProviderLibrary: [302, 'status', 'void *, const char *'],
  GetEpDevices: [303, 'status', `void *, ${OUT}, ${COUNT}`],
  SessionOptionsAppendExecutionProvider_V2: [
    304,
    'status',
    'void *, void *, void **, size_t, const char **, const char **, size_t',
  ],
  HardwareDevice_Type: [307, 'int', 'void *'],
  HardwareDevice_VendorId: [308, 'uint32_t', 'void *'],
  HardwareDevice_Vendor: [309, 'string', 'void *'],
  HardwareDevice_DeviceId: [310, 'uint32_t', 'void *'],
  HardwareDevice_Metadata: [311, 'pointer', 'void *'],
  EpDevice_EpName: [312, 'string', 'void *'],
  EpDevice_EpVendor: [313, 'string', 'void *'],
  EpDevice_EpMetadata: [314, 'pointer', 'void *'],
  EpDevice_EpOptions: [315, 'pointer', 'void *'],
  EpDevice_Device: [316, 'pointer', 'void *'],
  GetNumHardwareDevices: [397, 'status', `void *, ${COUNT}`],
  GetHardwareDevices: [398, 'status', 'void *, _Out_ void **, size_t'],
  Session_GetEpGraphAssignmentInfo: [407, 'status', `void *, ${OUT}, ${COUNT}`],
  EpAssignedSubgraph_GetEpName: [408, 'status', `void *, ${OUT}`],
  EpAssignedSubgraph_GetNodes: [409, 'status', `void *, ${OUT}, ${COUNT}`],
  EpAssignedNode_GetOperatorType: [412, 'status', `void *, ${OUT}`],
} as const satisfies Record<string, CFunction>;
export type CFunctionName = keyof typeof C_FUNCTIONS;
