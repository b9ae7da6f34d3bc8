import { append } from '../../lib/append.ts';
import { at } from '../../lib/at.ts';
import { DataType } from '../onnx/format/model.ts';
import { widen } from '../onnx/to-float32.ts';
import { RefusedContract } from './published-files.ts';

/*
 * Reads the files that `torch.save` writes for a few settings and tensors: a zip file without compression, with a
 * pickle that names the tensors' storages. Nothing in the file is executed: of the pickle, only the operations that
 * build dicts, lists, tuples and tensors are understood, and every other one refuses the file. Sources: Python's
 * `pickletools`; PyTorch, `torch/serialization.py` and `torch/_utils.py` (`_rebuild_tensor_v2`).
 */

/** Represents a value of such a file. Tuples become lists. */
export type TorchValue =
  | null
  | boolean
  | number
  | string
  | TorchTensor
  | readonly TorchValue[]
  | { readonly [key: string]: TorchValue };

/** Holds a tensor's values as 32-bit floats. */
export class TorchTensor {
  readonly dims: readonly number[];
  readonly values: Float32Array;

  constructor(dims: readonly number[], values: Float32Array) {
    this.dims = dims;
    this.values = values;
  }
}

/** Largest file that is read; the published heads have about 1 MB. */
export const MAX_TORCH_BYTES = 32 << 20;
/** Maximum size of all tensors as 32-bit floats: 16-bit ones take twice their bytes in the file. */
const MOST_TENSOR_BYTES = 2 * MAX_TORCH_BYTES;
/** Maximum number of operations in the pickle, and of values that it makes: a list may have another one many times. */
const MOST_OPERATIONS = 100_000;
const MOST_VALUES = 100_000;

/** Reads the value that a file contains. Throws `RefusedContract` for a file that holds anything else. */
export function readTorchFile(file: Uint8Array): TorchValue {
  // A plain array, because slices of a Node buffer share its memory.
  const entries = readStoredZip(new Uint8Array(file.buffer, file.byteOffset, file.byteLength));
  const pickle = [...entries].find(([name]) => name === 'data.pkl' || name.endsWith('/data.pkl'));
  if (!pickle) throw refuse('it is not a file of torch.save');
  const [name, program] = pickle;
  const folder = name.slice(0, -'data.pkl'.length);
  const order = entries.get(`${folder}byteorder`);
  if (order && new TextDecoder().decode(order) !== 'little') throw refuse('its numbers are not little-endian');
  return new Unpickler(program, (key) => entries.get(`${folder}data/${key}`)).read();
}

const refuse = (reason: string) => new RefusedContract(`its head.pt cannot be read: ${reason}`);

const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;

/** Returns the entries of a zip file whose entries are stored without compression. */
function readStoredZip(bytes: Uint8Array): Map<string, Uint8Array> {
  if (bytes.length > MAX_TORCH_BYTES) throw refuse(`it has more than ${MAX_TORCH_BYTES >> 20} MiB`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const within = (offset: number, length: number) => {
    if (offset < 0 || length < 0 || offset + length > bytes.length) throw refuse('it is cut short');
    return offset;
  };
  let end = bytes.length - END_BYTES;
  while (end >= 0 && view.getUint32(end, true) !== END) end--;
  if (end < 0) throw refuse('it is not a zip file');
  const count = view.getUint16(end + 10, true);
  let next = view.getUint32(end + 16, true);
  const entries = new Map<string, Uint8Array>();
  for (let i = 0; i < count; i++) {
    within(next, CENTRAL_BYTES);
    if (view.getUint32(next, true) !== CENTRAL) throw refuse('its list of files is damaged');
    const method = view.getUint16(next + 10, true);
    const size = view.getUint32(next + 24, true);
    const nameLength = view.getUint16(next + 28, true);
    const start = view.getUint32(next + 42, true);
    const name = new TextDecoder().decode(
      bytes.subarray(within(next + CENTRAL_BYTES, nameLength), next + CENTRAL_BYTES + nameLength),
    );
    if (method !== 0) throw refuse('its entries are compressed');
    within(start, LOCAL_BYTES);
    const data = start + LOCAL_BYTES + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
    entries.set(name, bytes.subarray(within(data, size), data + size));
    next += CENTRAL_BYTES + nameLength + view.getUint16(next + 30, true) + view.getUint16(next + 32, true);
  }
  return entries;
}

/** Names a function or class that the pickle may use. */
class Global {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Refers to the bytes of one or more tensors. */
class Storage {
  readonly type: string;
  readonly bytes: Uint8Array;

  constructor(type: string, bytes: Uint8Array) {
    this.type = type;
    this.bytes = bytes;
  }
}

type Dict = Map<StackValue, StackValue>;
type StackValue = null | boolean | number | string | TorchTensor | Global | Storage | StackValue[] | Dict;

const MARK = Symbol('mark');
const MOST_NAME_BYTES = 256;
const GLOBALS = ['torch._utils _rebuild_tensor_v2', 'torch._utils _rebuild_parameter', 'collections OrderedDict'];
/** Element type and bytes of each kind of storage. */
const STORAGES: Readonly<Record<string, { dataType: number; bytes: number }>> = {
  'torch FloatStorage': { dataType: DataType.float, bytes: 4 },
  'torch HalfStorage': { dataType: DataType.float16, bytes: 2 },
  'torch BFloat16Storage': { dataType: DataType.bfloat16, bytes: 2 },
};

/** Runs the operations of a pickle on a stack. */
class Unpickler {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #storage: (key: string) => Uint8Array | undefined;
  readonly #stack: (StackValue | typeof MARK)[] = [];
  #tensorBytes = 0;
  readonly #memo = new Map<number, StackValue>();
  #at = 0;

  constructor(bytes: Uint8Array, storage: (key: string) => Uint8Array | undefined) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#storage = storage;
  }

  /** The operations that push a value, by their codes and names in `pickletools`. */
  static readonly #VALUES: Readonly<Record<number, (own: Unpickler) => StackValue | typeof MARK>> = {
    40: () => MARK, // MARK
    125: () => new Map(), // EMPTY_DICT
    93: () => [], // EMPTY_LIST
    41: () => [], // EMPTY_TUPLE
    78: () => null, // NONE
    136: () => true, // NEWTRUE
    137: () => false, // NEWFALSE
    75: (own) => own.#byte(), // BININT1
    77: (own) => own.#view.getUint16(own.#take(2), true), // BININT2
    74: (own) => own.#view.getInt32(own.#take(4), true), // BININT
    138: (own) => own.#long(own.#byte()), // LONG1
    71: (own) => own.#view.getFloat64(own.#take(8)), // BINFLOAT
    88: (own) => own.#text(own.#count()), // BINUNICODE
    140: (own) => own.#text(own.#byte()), // SHORT_BINUNICODE
    99: (own) => own.#global(own.#line(), own.#line()), // GLOBAL
    147: (own) => own.#stackGlobal(), // STACK_GLOBAL
    104: (own) => own.#remembered(own.#byte()), // BINGET
    106: (own) => own.#remembered(own.#count()), // LONG_BINGET
    116: (own) => own.#toMark(), // TUPLE
    133: (own) => own.#tuple(1), // TUPLE1
    134: (own) => own.#tuple(2), // TUPLE2
    135: (own) => own.#tuple(3), // TUPLE3
    81: (own) => own.#openStorage(own.#pop()), // BINPERSID
    82: (own) => own.#reduce(), // REDUCE
  };

  /** The operations that push nothing. */
  static readonly #CHANGES: Readonly<Record<number, (own: Unpickler) => unknown>> = {
    128: (own) => own.#take(1), // PROTO
    149: (own) => own.#take(8), // FRAME
    113: (own) => own.#memo.set(own.#byte(), own.#top()), // BINPUT
    114: (own) => own.#memo.set(own.#count(), own.#top()), // LONG_BINPUT
    148: (own) => own.#memo.set(own.#memo.size, own.#top()), // MEMOIZE
    97: (own) => own.#append([own.#pop()]), // APPEND
    101: (own) => own.#append(own.#toMark()), // APPENDS
    115: (own) => own.#setItems(own.#tuple(2)), // SETITEM
    117: (own) => own.#setItems(own.#toMark()), // SETITEMS
    // BUILD: attributes of an OrderedDict, such as the versions of modules.
    98: (own) => [own.#pop(), own.#dict()],
  };
  static readonly #STOP = 46;

  read(): TorchValue {
    try {
      for (let count = 0; count < MOST_OPERATIONS; count++) {
        const code = this.#byte();
        if (code === Unpickler.#STOP) return plain(this.#pop(), 0, { left: MOST_VALUES });
        const value = Unpickler.#VALUES[code]?.(this);
        if (value !== undefined) this.#stack.push(value);
        else if (!Unpickler.#CHANGES[code]) throw refuse(`its pickle has the operation 0x${code.toString(16)}`);
        else Unpickler.#CHANGES[code](this);
      }
    } catch (error) {
      if (error instanceof RefusedContract) throw error;
      throw refuse('its pickle is damaged');
    }
    throw refuse('its pickle is too long');
  }

  #tuple(length: number): StackValue[] {
    return Array.from({ length }, () => this.#pop()).reverse();
  }

  #append(items: readonly StackValue[]): void {
    const list = this.#top();
    if (!Array.isArray(list)) throw refuse('its pickle is damaged');
    append(list, items);
  }

  #setItems(items: readonly StackValue[]): void {
    const dict = this.#dict();
    for (let i = 0; i + 1 < items.length; i += 2) dict.set(at(items, i), at(items, i + 1));
  }

  #stackGlobal(): Global {
    const [module, name] = this.#tuple(2);
    if (typeof module !== 'string' || typeof name !== 'string') throw refuse('its pickle is damaged');
    return this.#global(module, name);
  }

  #reduce(): StackValue {
    const [callee, args] = this.#tuple(2);
    if (!(callee instanceof Global) || !Array.isArray(args)) throw refuse('its pickle is damaged');
    if (callee.name === 'collections OrderedDict' && args.length === 0) return new Map();
    if (callee.name === 'torch._utils _rebuild_parameter' && args[0] instanceof TorchTensor) return args[0];
    if (callee.name === 'torch._utils _rebuild_tensor_v2') {
      const made = tensor(args, MOST_TENSOR_BYTES - this.#tensorBytes);
      this.#tensorBytes += made.values.byteLength;
      return made;
    }
    throw refuse(`its pickle calls ${callee.name.replace(' ', '.')} in an unknown way`);
  }

  #take(length: number): number {
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw refuse('its pickle is cut short');
    return start;
  }

  #byte(): number {
    return at(this.#bytes, this.#take(1));
  }

  #count(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  #text(length: number): string {
    const start = this.#take(length);
    return new TextDecoder('utf-8', { fatal: true }).decode(this.#bytes.subarray(start, start + length));
  }

  #line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end === -1 || end - this.#at > MOST_NAME_BYTES) throw refuse('its pickle is damaged');
    const text = this.#text(end - this.#at);
    this.#at++;
    return text;
  }

  #long(length: number): number {
    let value = 0n;
    const start = this.#take(length);
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(at(this.#bytes, start + i));
    return Number(BigInt.asIntN(8 * length, value));
  }

  #global(module: string, name: string): Global {
    const full = `${module} ${name}`;
    if (GLOBALS.includes(full) || Object.hasOwn(STORAGES, full)) return new Global(full);
    throw refuse(`its pickle asks for ${full.slice(0, MOST_NAME_BYTES).replace(' ', '.')}`);
  }

  #pop(): StackValue {
    const value = this.#stack.pop();
    if (value === undefined || value === MARK) throw refuse('its pickle is damaged');
    return value;
  }

  #top(): StackValue {
    const value = this.#pop();
    this.#stack.push(value);
    return value;
  }

  #dict(): Dict {
    const value = this.#top();
    if (!(value instanceof Map)) throw refuse('its pickle is damaged');
    return value;
  }

  #toMark(): StackValue[] {
    const mark = this.#stack.lastIndexOf(MARK);
    if (mark < 0) throw refuse('its pickle is damaged');
    const items = this.#stack.splice(mark + 1) as StackValue[];
    this.#stack.pop();
    return items;
  }

  #remembered(key: number): StackValue {
    const value = this.#memo.get(key);
    if (value === undefined) throw refuse('its pickle is damaged');
    return value;
  }

  #openStorage(id: StackValue): Storage {
    const [kind, type, key] = Array.isArray(id) ? id : [];
    if (kind !== 'storage' || !(type instanceof Global) || typeof key !== 'string')
      throw refuse('its pickle refers to something other than the numbers of a tensor');
    const bytes = this.#storage(key);
    if (!bytes || !Object.hasOwn(STORAGES, type.name)) throw refuse('the numbers of a tensor are missing');
    return new Storage(type.name, bytes);
  }
}

/** Reads a tensor of at most `most` bytes from its storage, offset, dimensions and strides. */
function tensor([storage, offset, dims, strides]: readonly StackValue[], most: number): TorchTensor {
  if (!(storage instanceof Storage) || !isCount(offset) || !areCounts(dims) || !areCounts(strides))
    throw refuse('a tensor is described in an unknown way');
  const { dataType, bytes } = STORAGES[storage.type]!;
  const size = dims.reduce((product, dim) => product * dim, 1);
  let step = 1;
  for (let i = dims.length - 1; i >= 0; i--) {
    if (at(dims, i) > 1 && strides[i] !== step) throw refuse('a tensor is not contiguous');
    step *= at(dims, i);
  }
  if ((offset + size) * bytes > storage.bytes.length) throw refuse('a tensor is larger than its numbers');
  // Many tensors may name the same storage.
  if (size * Float32Array.BYTES_PER_ELEMENT > most) throw refuse('its tensors are too large together');
  const part = storage.bytes.slice(offset * bytes, (offset + size) * bytes);
  const values = dataType === DataType.float ? new Float32Array(part.buffer) : widen(part, dataType);
  return new TorchTensor(dims, values);
}

const isCount = (value: StackValue | undefined): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const areCounts = (value: StackValue | undefined): value is number[] => Array.isArray(value) && value.every(isCount);

/** Maximum depth of lists and dicts in each other. */
const DEPTH = 32;

/** Converts a value of the stack, of at most `budget.left` values, to one without maps. */
function plain(value: StackValue, depth: number, budget: { left: number }): TorchValue {
  if (budget.left-- === 0) throw refuse('its pickle makes too many values');
  if (depth > DEPTH || value instanceof Global || value instanceof Storage) throw refuse('its pickle is damaged');
  if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1, budget));
  if (!(value instanceof Map)) return value;
  return Object.fromEntries(
    [...value].map(([key, item]) => {
      if (typeof key === 'object') throw refuse('its pickle has a name that is no text');
      return [String(key), plain(item, depth + 1, budget)];
    }),
  );
}
