import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { KoffiFunc } from 'koffi';

/** Represents an address in native memory. Null and 0 are the null pointer. */
export type Pointer = bigint | null;

/** Calls functions of onnxruntime's C API. For functions that return an `OrtStatus`, a failure throws an `OrtError`. */
export interface CApi {
  call(name: CFunctionName, ...args: unknown[]): void;
  /**
   * Calls a function on another thread, so that this process still handles messages while a model is compiled or runs.
   * Calls run one at a time.
   */
  callAsync(name: CFunctionName, ...args: unknown[]): Promise<void>;
  /** Calls a function that has no status, and returns its result. */
  value<T>(name: CFunctionName, ...args: unknown[]): T;
  /** Calls a function that takes a pointer for its result as an additional last argument. Returns that result. */
  pointer(name: CFunctionName, ...args: unknown[]): Pointer;
  /**
   * Calls a function that takes pointers for an array and its length as two additional last arguments. Returns the
   * array.
   */
  pointers(name: CFunctionName, ...args: unknown[]): Pointer[];
  pointerAt(array: Pointer, index: number): Pointer;
  string(pointer: Pointer): string;
}

type NativeFunction = KoffiFunc<(...args: unknown[]) => never>;

/**
 * Stack size of a call on another thread, in bytes: the same as a thread on Linux. koffi's default of 128 KiB is too
 * small for model compilers.
 */
const STACK_BYTES = 8 * 2 ** 20;

let loaded: Promise<CApi> | undefined;

/**
 * Opens the onnxruntime library that onnxruntime-node has loaded, so that calls through the C API share its
 * environment. The first call loads koffi, so a process without plugins never does. Rejects with an `OrtError` if the
 * library's version is not `ORT_VERSION`, and with koffi's error if koffi or the library does not load.
 */
export function loadCApi(): Promise<CApi> {
  loaded ??= bind();
  return loaded;
}

/**
 * Loads onnxruntime-node, and returns the file name by which the onnxruntime library that it has loaded can be opened:
 * an absolute path, or on Linux only a name, because a plugin may bring its own library (`libraryPath`). Source:
 * onnxruntime-node, `bin/napi-v6/<platform>/<arch>`.
 */
export function libraryFile(): string {
  // onnxruntime-node must load the library first, from its own folder, which contains the library's dependencies.
  const require = createRequire(import.meta.url);
  require('onnxruntime-node');
  if (process.platform === 'linux') return 'libonnxruntime.so.1';
  const root = dirname(require.resolve('onnxruntime-node/package.json'));
  const name = process.platform === 'win32' ? 'onnxruntime.dll' : 'libonnxruntime.1.dylib';
  return join(root, 'bin/napi-v6', process.platform, process.arch, name);
}

async function bind(): Promise<CApi> {
  const { default: koffi } = await import('koffi');
  koffi.config({ ...koffi.config(), async_stack_size: STACK_BYTES, resident_async_pools: 1 });
  const pointerAt = (array: Pointer, index: number): Pointer => koffi.decode(array, index * 8, 'void *');
  const base: Pointer = koffi.load(libraryFile()).func('void *OrtGetApiBase()')();
  const version: string = koffi.call(pointerAt(base, 1), koffi.proto('const char *assay_GetVersionString()'));
  checkVersion(version);
  const api: Pointer = koffi.call(pointerAt(base, 0), koffi.proto('void *assay_GetApi(uint32_t)'), API_VERSION);
  if (!api) throw new OrtError('GetApi', 1, `onnxruntime ${version} has no C API of version ${API_VERSION}`);

  const results = { status: 'void *', pointer: 'void *', string: 'const char *' } as const;
  const functions = new Map<string, NativeFunction>();
  for (const [name, [index, result, args]] of Object.entries<CFunction>(C_FUNCTIONS)) {
    // A cast, because `in` does not narrow the type of the name.
    const type = result in results ? results[result as keyof typeof results] : result;
    functions.set(name, koffi.decode(pointerAt(api, index), koffi.proto(`${type} assay_${name}(${args})`)));
  }
  const value = <T>(name: CFunctionName, ...args: unknown[]): T => functions.get(name)!(...args);
  const check = (name: CFunctionName, status: Pointer): void => {
    if (!status) return;
    const error = new OrtError(name, value('GetErrorCode', status), value('GetErrorMessage', status));
    value('ReleaseStatus', status);
    throw error;
  };
  const call = (name: CFunctionName, ...args: unknown[]): void => check(name, value(name, ...args));
  let last: Promise<void> = Promise.resolve();
  return {
    call,
    async callAsync(name, ...args) {
      const before = last;
      const { promise, resolve, reject } = Promise.withResolvers<Pointer>();
      last = promise.then(
        () => {},
        () => {},
      );
      await before;
      try {
        const done = (error: unknown, status: Pointer): void => (error ? reject(error) : resolve(status));
        functions.get(name)!.async(...args, done);
      } catch (error) {
        reject(error);
      }
      check(name, await promise);
    },
    value,
    pointer(name, ...args) {
      const out: [Pointer] = [null];
      call(name, ...args, out);
      return out[0];
    },
    pointers(name, ...args) {
      const [out, count]: [[Pointer], [number | bigint]] = [[null], [0]];
      call(name, ...args, out, count);
      return Array.from({ length: Number(count[0]) }, (_, index) => pointerAt(out[0], index));
    },
    pointerAt,
    string: (pointer) => (pointer ? koffi.decode.string(pointer) : ''),
  };
}

/** Throws `OrtError` if the library's version is not the one for which the function table was written. */
export function checkVersion(version: string): void {
  if (version === ORT_VERSION) return;
  const wanted = `Assay calls plugins through onnxruntime ${ORT_VERSION}, and this is ${version}. Install the package's own: npm ci`;
  throw new OrtError('GetVersionString', 1, wanted);
}

/** Names of the error codes of `OrtErrorCode`, in order. Source: onnxruntime_c_api.h, 1.30. */
const ORT_ERROR_CODES = [
  'ok',
  'fail',
  'invalid_argument',
  'no_such_file',
  'no_model',
  'engine_error',
  'runtime_exception',
  'invalid_protobuf',
  'model_loaded',
  'not_implemented',
  'invalid_graph',
  'ep_fail',
  'model_load_cancelled',
  'model_requires_compilation',
  'not_found',
] as const;
type OrtErrorCode = (typeof ORT_ERROR_CODES)[number] | 'unknown';

/**
 * Reports that a call of onnxruntime's C API failed. `message` is onnxruntime's own and may contain paths, so it is
 * logged and shown by `assay doctor`, but never sent to a client.
 */
class OrtError extends Error {
  override readonly name = 'OrtError';
  readonly code: OrtErrorCode;
  /** Name of the C function that failed. */
  readonly call: string;

  constructor(call: string, code: number, message: string) {
    super(message);
    this.call = call;
    this.code = ORT_ERROR_CODES[code] ?? 'unknown';
  }
}

/**
 * Describes a function of the C API: its index in `OrtApi`, its result type, and its argument types in koffi's
 * notation.
 */
type CFunction = readonly [
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
const API_VERSION = 24;

/** Type of file names (`ORTCHAR_T`), which are UTF-16 on Windows. */
const PATH = process.platform === 'win32' ? 'const char16_t *' : 'const char *';
const OUT = '_Out_ void **';
const COUNT = '_Out_ size_t *';

/**
 * Functions that Assay calls. Source: onnxruntime_c_api.h, 1.30 (`struct OrtApi`; the index is the position of the
 * member).
 */
const C_FUNCTIONS = {
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
type CFunctionName = keyof typeof C_FUNCTIONS;
