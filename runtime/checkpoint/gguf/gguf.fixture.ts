/** A value of the metadata with its type, as GGUF numbers them. */
type Written =
  | { u32: number }
  | { u64: bigint }
  | { f32: number }
  | { f64: number }
  | { flag: boolean }
  | { text: string }
  | { texts: readonly string[] }
  | { numbers: readonly number[] }
  | { raw: Uint8Array };

export interface WrittenTensor {
  name: string;
  /** The fastest dimension first. */
  dims: readonly (number | bigint)[];
  type: number;
  bytes: Uint8Array;
  /** Default: after the tensors before it, aligned. */
  offset?: number | bigint;
}

const bytesOf = (width: number, write: (view: DataView) => void): Uint8Array => {
  const bytes = new Uint8Array(width);
  write(new DataView(bytes.buffer));
  return bytes;
};
export const u32 = (value: number) => bytesOf(4, (view) => view.setUint32(0, value, true));
export const u64 = (value: number | bigint) => bytesOf(8, (view) => view.setBigUint64(0, BigInt(value), true));
const f64 = (value: number) => bytesOf(8, (view) => view.setFloat64(0, value, true));
const f32 = (value: number) => bytesOf(4, (view) => view.setFloat32(0, value, true));
export const text = (value: string): Uint8Array => {
  const bytes = new TextEncoder().encode(value);
  return Buffer.concat([u64(bytes.length), bytes]);
};

function valueBytes(value: Written): Uint8Array {
  if ('u32' in value) return Buffer.concat([u32(4), u32(value.u32)]);
  if ('u64' in value) return Buffer.concat([u32(10), u64(value.u64)]);
  if ('f32' in value) return Buffer.concat([u32(6), f32(value.f32)]);
  if ('f64' in value) return Buffer.concat([u32(12), f64(value.f64)]);
  if ('flag' in value) return Buffer.concat([u32(7), Uint8Array.of(Number(value.flag))]);
  if ('text' in value) return Buffer.concat([u32(8), text(value.text)]);
  if ('texts' in value) return Buffer.concat([u32(9), u32(8), u64(value.texts.length), ...value.texts.map(text)]);
  if ('numbers' in value) return Buffer.concat([u32(9), u32(6), u64(value.numbers.length), ...value.numbers.map(f32)]);
  return value.raw;
}

/** Returns the bytes of a GGUF file. Nothing is checked, so that it may be a damaged one. */
export function ggufBytes(
  metadata: readonly (readonly [key: string, value: Written])[],
  tensors: readonly WrittenTensor[],
  { magic = 'GGUF', version = 3, keys = metadata.length, count = tensors.length }: Partial<Head> = {},
): Uint8Array {
  const infos: Uint8Array[] = [];
  const data: Uint8Array[] = [];
  let offset = 0;
  for (const tensor of tensors) {
    const dims = [u32(tensor.dims.length), ...tensor.dims.map(u64)];
    infos.push(text(tensor.name), ...dims, u32(tensor.type), u64(tensor.offset ?? offset));
    const padded = new Uint8Array(Math.ceil(tensor.bytes.length / 32) * 32);
    padded.set(tensor.bytes);
    data.push(padded);
    offset += padded.length;
  }
  const values = metadata.flatMap(([key, value]) => [text(key), valueBytes(value)]);
  const head = [new TextEncoder().encode(magic), u32(version), u64(count), u64(keys)];
  const header = Buffer.concat([...head, ...values, ...infos]);
  const padding = new Uint8Array((32 - (header.length % 32)) % 32);
  return new Uint8Array(Buffer.concat([header, padding, ...data]));
}

interface Head {
  magic: string;
  version: number;
  keys: number | bigint;
  count: number | bigint;
}

/** Returns a tensor of random floats. `dims`: the fastest first. */
function random(name: string, ...dims: number[]): WrittenTensor {
  const count = dims.reduce((product, dim) => product * dim, 1);
  const floats = Float32Array.from(
    { length: count },
    (_, at) => (dims.length === 1 ? 1 : 0) + 0.4 * Math.sin(at * 78.233),
  );
  return { name, dims, type: 0, bytes: new Uint8Array(floats.buffer) };
}

/** Returns the bytes of a whole tiny model of the architecture `llama`, whose tokens are the bytes and two more. */
export function tinyGguf(own: readonly (readonly [key: string, value: Written])[] = []): Uint8Array {
  const tokens = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const numbers = Object.entries({
    block_count: 1,
    embedding_length: 32,
    'attention.head_count': 2,
    context_length: 64,
  });
  const metadata = [
    ['general.architecture', { text: 'llama' }],
    ...numbers.map(([key, value]) => [`llama.${key}`, { u32: value }] as const),
    ['llama.feed_forward_length', { u32: 32 }],
    ['llama.attention.layer_norm_rms_epsilon', { f32: 1e-5 }],
    ['tokenizer.ggml.model', { text: 'llama' }],
    ['tokenizer.ggml.tokens', { texts: ['<unk>', '</s>', ...tokens] }],
    ['tokenizer.ggml.token_type', { numbers: [2, 3, ...tokens.map(() => 6)] }],
    ['tokenizer.ggml.scores', { numbers: ['', '', ...tokens].map(() => 0) }],
    ['tokenizer.ggml.unknown_token_id', { u32: 0 }],
    ['tokenizer.ggml.eos_token_id', { u32: 1 }],
    ...own,
  ] as const;
  const matrices = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'];
  const layer = (name: string) => `blk.0.${name}.weight`;
  return ggufBytes(metadata, [
    random('token_embd.weight', 32, tokens.length + 2),
    random('output_norm.weight', 32),
    ...['attn_norm', 'ffn_norm'].map((name) => random(layer(name), 32)),
    ...matrices.map((name) => random(layer(name), 32, 32)),
  ]);
}
