import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readCheckpoint } from '../../runtime/checkpoint/safetensors.ts';
import { plannedGraphs } from '../../runtime/compile/planned-graphs.ts';
import { convertWeights } from '../../runtime/compile/weight-conversion.ts';
import { openEncoderGraphs } from '../../runtime/encoder/encoder-graphs.ts';
import { buildEncoder } from '../../runtime/graph/encoder-graph.ts';
import type { Report } from '../report.ts';

const HELP = `npm run bench -- encoders [--python=PATH] [--rounds=4] [--quick]

Processor time of one row of an encoder of 150 million parameters (ModernBERT-base, random weights) in each precision. With the path of a
Python that has torch and transformers, PyTorch computes the same checkpoint in 32-bit floats. For long rows, attention in blocks is compared
with all scores of a row. A language model reads a text once for all
questions and an encoder once for each, so compare with "npm run bench -- forms".`;

const FORMS = ['float', 'int8', 'int8-blocks'] as const;
const LENGTHS = [128, 1064];
/** Lengths at which attention in blocks is compared with all scores. */
const LONG = [1064, 2048, 4096];
const THREADS = 2;
const BASE = { hidden: 768, inner: 1152, layers: 22, heads: 12, vocab: 50_368 };
const QUICK = { hidden: 64, inner: 96, layers: 4, heads: 4, vocab: 1000 };

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      python: { type: 'string' },
      rounds: { type: 'string', default: '4' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const folder = mkdtempSync(join(tmpdir(), 'assay-encoders-'));
  const rounds = Number(values.rounds);
  try {
    const config = writeCheckpoint(folder, values.quick ? QUICK : BASE);
    for (const form of FORMS) {
      const graphs = await compiled(folder, config, form);
      for (const length of LENGTHS) report(figure(`assay ${form}`, length, await leastTime(graphs, length, rounds)));
      await graphs.close();
    }
    await compareAttention(report, folder, config, rounds);
    if (values.python) pytorch(report, values.python, folder, rounds);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Graphs = Awaited<ReturnType<typeof openEncoderGraphs>>;

/** Compiles the checkpoint of a folder with a configuration, and opens its graph. */
async function compiled(
  folder: string,
  config: object,
  form: (typeof FORMS)[number],
  name: string = form,
): Promise<Graphs> {
  const model = buildEncoder({ name: 'decision-tune', maxTokens: 8192 }, config, readCheckpoint(folder));
  convertWeights(model, 'input_ids', form);
  const into = join(folder, name);
  await plannedGraphs([{ file: 'model.onnx', model }], 'weights.bin').write(into, () => undefined, undefined);
  return openEncoderGraphs(into, { graphs: { model: 'model.onnx' } }, { pad: 0, threads: THREADS });
}

/** Returns the least processor time, in seconds, of a row of `length` tokens. */
async function leastTime(graphs: Graphs, length: number, rounds: number): Promise<number> {
  const ids = Array.from({ length }, (_, i) => 5 + ((i * 7919) % 900));
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    await graphs.run([{ ids, shared: 0, markers: [3, 9, 20] }]);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1e6);
  }
  return least;
}

const figure = (system: string, length: number, value: number) => ({
  system,
  case: `${length} tokens`,
  metric: 'processor time',
  value,
  unit: 's',
});

/**
 * Measures what it saves that layers with a window compute in blocks: the same layers with all scores of a row, and
 * without even a mask, take turns with them.
 */
async function compareAttention(report: Report, folder: string, config: object, rounds: number): Promise<void> {
  const { num_hidden_layers: count } = config as { num_hidden_layers: number };
  const all = { ...config, layer_types: Array.from({ length: count }, () => 'full_attention') };
  const blocks = await compiled(folder, config, 'int8', 'blocks');
  const whole = await compiled(folder, all, 'int8', 'whole');
  for (const length of LONG) {
    let [inBlocks, inWhole] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let round = 0; round < rounds; round++) {
      inBlocks = Math.min(inBlocks, await leastTime(blocks, length, 1));
      inWhole = Math.min(inWhole, await leastTime(whole, length, 1));
    }
    report(figure('assay int8, attention in blocks', length, inBlocks));
    report(figure('assay int8, all scores', length, inWhole));
  }
  await blocks.close();
  await whole.close();
}

/** Measures PyTorch on the same checkpoint. */
function pytorch(report: Report, python: string, folder: string, rounds: number): void {
  const script = `
import json, time, torch
from safetensors.torch import load_file
from transformers import ModernBertConfig, ModernBertModel
torch.set_num_threads(${THREADS})
model = ModernBertModel(ModernBertConfig(**json.load(open("config.json")))).eval()
model.load_state_dict({k: v for k, v in load_file("model.safetensors").items() if not k.startswith("head.")})
with torch.inference_mode():
    for length in ${JSON.stringify(LENGTHS)}:
        ids = torch.tensor([[5 + i * 7919 % 900 for i in range(length)]])
        times = []
        for _ in range(${rounds}):
            before = time.process_time()
            model(input_ids=ids, attention_mask=torch.ones_like(ids))
            times.append(time.process_time() - before)
        print(length, min(times))
`;
  const out = execFileSync(python, ['-c', script], { cwd: folder, encoding: 'utf8' });
  for (const line of out.trim().split('\n')) {
    const [length, seconds] = line.split(' ');
    report(figure('PyTorch float32', Number(length), Number(seconds)));
  }
}

/** Writes a checkpoint with random weights, and returns its configuration. */
function writeCheckpoint(folder: string, { hidden, inner, layers, heads, vocab }: typeof BASE): object {
  const shapes: Record<string, number[]> = {
    'embeddings.tok_embeddings.weight': [vocab, hidden],
    'embeddings.norm.weight': [hidden],
    'final_norm.weight': [hidden],
    'head.weight': [1, hidden],
    'head.bias': [1],
  };
  for (let layer = 0; layer < layers; layer++) {
    const at = `layers.${layer}`;
    if (layer > 0) shapes[`${at}.attn_norm.weight`] = [hidden];
    Object.assign(shapes, {
      [`${at}.attn.Wqkv.weight`]: [3 * hidden, hidden],
      [`${at}.attn.Wo.weight`]: [hidden, hidden],
      [`${at}.mlp_norm.weight`]: [hidden],
      [`${at}.mlp.Wi.weight`]: [2 * inner, hidden],
      [`${at}.mlp.Wo.weight`]: [hidden, inner],
    });
  }
  let offset = 0;
  const header = Object.entries(shapes).map(([name, shape]) => {
    const start = offset;
    offset += 4 * shape.reduce((product, size) => product * size, 1);
    return [name, { dtype: 'F32', shape, data_offsets: [start, offset] }] as const;
  });
  const json = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  mkdirSync(folder, { recursive: true });
  const file = openSync(join(folder, 'model.safetensors'), 'w');
  for (const part of [length, json]) writeSync(file, part);
  let seed = 1;
  for (const [name, shape] of Object.entries(shapes)) {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    const isNorm = shape.length === 1;
    for (let i = 0; i < values.length; i++) {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      values[i] = isNorm ? (name === 'head.bias' ? 0 : 1) : (seed / 2 ** 32 - 0.5) * 0.07;
    }
    writeSync(file, new Uint8Array(values.buffer));
  }
  closeSync(file);
  const config = {
    model_type: 'modernbert',
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    vocab_size: vocab,
    max_position_embeddings: 8192,
    pad_token_id: 0,
    norm_eps: 1e-5,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return config;
}
