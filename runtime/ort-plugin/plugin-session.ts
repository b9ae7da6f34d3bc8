import type { Pointer } from './c-api.ts';
import type { EpDevice, OrtEnvironment } from './environment.ts';

/** Element type of each typed array (`ONNXTensorElementDataType`). */
const ELEMENT_TYPES = new Map<unknown, number>([
  [Float32Array, 1],
  [Uint8Array, 2],
  [Int8Array, 3],
  [Int32Array, 6],
  [BigInt64Array, 7],
  [Uint16Array, 10],
]);

/** Describes a tensor in memory of the caller. A `Uint16Array` contains 16-bit floats. */
export interface TensorView {
  name: string;
  data: Float32Array | Uint8Array | Int8Array | Int32Array | BigInt64Array | Uint16Array;
  dims: readonly number[];
}

export interface PluginSessionOptions {
  /** Device to run the model on. Default: onnxruntime's own CPU provider. */
  device?: EpDevice;
  /** Options of the device's execution provider. */
  providerOptions?: Readonly<Record<string, string>>;
  /** Entries of the session configuration (onnxruntime_session_options_config_keys.h). */
  config?: Readonly<Record<string, string>>;
  /** Threads of the CPU provider. Default: one for each physical core. */
  threads?: number;
}

/** Describes the part of a model that one execution provider computes. */
export interface Assignment {
  provider: string;
  /** Number of subgraphs, each of which runs as a unit. */
  subgraphs: number;
  /** Number of nodes of each operator in these subgraphs. */
  operators: Readonly<Record<string, number>>;
}

/** Allocator and memory type of ordinary CPU memory: `OrtDeviceAllocator` and `OrtMemTypeDefault`. */
const CPU_MEMORY = [0, 0] as const;
const LOG_ERRORS = 3;

/** Runs a model that is loaded on a plugin's device, or on the CPU. */
export class PluginSession {
  readonly #env: OrtEnvironment;
  readonly #memory: Pointer;
  #session: Pointer;
  /** Tensors of the current run, referenced so that they are not garbage-collected during it. */
  #inUse: readonly TensorView[] = [];

  private constructor(env: OrtEnvironment, session: Pointer, memory: Pointer) {
    this.#env = env;
    this.#session = session;
    this.#memory = memory;
  }

  /**
   * Loads a model from a file, and compiles it if the device requires that. Throws `OrtError` if onnxruntime refuses an
   * option, or cannot load or compile the model.
   */
  static async create(env: OrtEnvironment, file: string, options: PluginSessionOptions = {}): Promise<PluginSession> {
    const { device, providerOptions = {}, config = {}, threads } = options;
    const { api } = env;
    const memory = api.pointer('CreateCpuMemoryInfo', ...CPU_MEMORY);
    const settings = api.pointer('CreateSessionOptions');
    try {
      api.call('SetSessionLogSeverityLevel', settings, LOG_ERRORS);
      if (threads) api.call('SetIntraOpNumThreads', settings, threads);
      for (const [key, value] of Object.entries(config)) api.call('AddSessionConfigEntry', settings, key, value);
      if (device) {
        const [keys, values] = [Object.keys(providerOptions), Object.values(providerOptions)];
        const chosen = [settings, env.handle, [device.handle], 1, keys, values, keys.length];
        api.call('SessionOptionsAppendExecutionProvider_V2', ...chosen);
      }
      const out: [Pointer] = [null];
      await api.callAsync('CreateSession', env.handle, file, settings, out);
      return new PluginSession(env, out[0], memory);
    } catch (cause) {
      api.value('ReleaseMemoryInfo', memory);
      throw cause;
    } finally {
      api.value('ReleaseSessionOptions', settings);
    }
  }

  /**
   * Runs the model and writes the results to the arrays of `outputs`. Only one run may be under way, and the caller
   * must not touch the arrays until it ends. Throws `OrtError` if the run fails; `RangeError` for an array whose length
   * does not fit its `dims`; `TypeError` for an array type that cannot be passed.
   */
  async run(inputs: readonly TensorView[], outputs: readonly TensorView[]): Promise<void> {
    const { api } = this.#env;
    const values: Pointer[] = [];
    this.#inUse = [...inputs, ...outputs];
    try {
      for (const tensor of this.#inUse) values.push(this.#value(tensor));
      const [given, wanted] = [values.slice(0, inputs.length), values.slice(inputs.length)];
      const names = (tensors: readonly TensorView[]): string[] => tensors.map(({ name }) => name);
      const from = [names(inputs), given, given.length] as const;
      const into = [names(outputs), wanted.length, wanted] as const;
      await api.callAsync('Run', this.#session, null, ...from, ...into);
    } finally {
      this.#inUse = [];
      for (const value of values) api.value('ReleaseValue', value);
    }
  }

  /**
   * Returns which part of the model each provider computes. The session must have been created with the configuration
   * `session.record_ep_graph_assignment_info` set to `1`.
   */
  assignments(): Assignment[] {
    const { api } = this.#env;
    const found = new Map<string, { provider: string; subgraphs: number; operators: Record<string, number> }>();
    for (const subgraph of api.pointers('Session_GetEpGraphAssignmentInfo', this.#session)) {
      const provider = api.string(api.pointer('EpAssignedSubgraph_GetEpName', subgraph));
      const entry = found.get(provider) ?? { provider, subgraphs: 0, operators: {} };
      found.set(provider, entry);
      entry.subgraphs++;
      for (const node of api.pointers('EpAssignedSubgraph_GetNodes', subgraph)) {
        const operator = api.string(api.pointer('EpAssignedNode_GetOperatorType', node));
        entry.operators[operator] = (entry.operators[operator] ?? 0) + 1;
      }
    }
    return [...found.values()];
  }

  /** Frees the model. No run may be under way. */
  release(): void {
    if (!this.#session) return;
    this.#env.api.value('ReleaseSession', this.#session);
    this.#env.api.value('ReleaseMemoryInfo', this.#memory);
    this.#session = null;
  }

  #value({ name, data, dims }: TensorView): Pointer {
    const elements = dims.reduce((product, dim) => product * dim, 1);
    // onnxruntime accesses memory by the shape alone, so a shorter array would be accessed out of bounds.
    if (elements !== data.length)
      throw new RangeError(`${name} has ${data.length} elements and a shape of ${elements}`);
    const type = ELEMENT_TYPES.get(data.constructor);
    if (type === undefined) throw new TypeError(`${name} is an array of a kind that cannot be passed`);
    const shape = BigInt64Array.from(dims, BigInt);
    const tensor = [this.#memory, data, data.byteLength, shape, shape.length, type] as const;
    return this.#env.api.pointer('CreateTensorWithDataAsOrtValue', ...tensor);
  }
}
