import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { planModel } from '../../runtime/compile/plan-model.ts';
import { plannedGraphs } from '../../runtime/compile/planned-graphs.ts';
import { blockWeights } from '../../runtime/compile/weights/blocks.ts';
import {
  attributeFields,
  DataType,
  type Graph,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
} from '../../runtime/onnx/format/model.ts';
import { readModel } from '../../runtime/onnx/format/read-model.ts';
import { readFloats } from '../../runtime/onnx/format/tensor-data.ts';
import { modelFixture } from '../fixture.ts';
import { compileFixture, continueGreedily, goldenCases } from './fixtures.ts';
import { compiledModel, publishedModel } from './plain-models.ts';

const MS = 'com.microsoft';
const folder = mkdtempSync(join(tmpdir(), 'assay-published-'));
afterAll(() => rmSync(folder, { recursive: true }));
const seed = Math.floor(Math.random() * 2 ** 31);
let state = seed;
/** Returns the next of a sequence of random numbers from 0 to 1. */
const random = (): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};
const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => random() * 256);

/** Products with constant matrices `[inputs, outputs]`. */
function products({ nodes, initializers }: Graph): { node: OnnxNode; matrix: Tensor }[] {
  return nodes.flatMap((node) => {
    const matrix = node.op === 'MatMul' ? initializers.get(node.inputs[1] ?? '') : undefined;
    return matrix ? [{ node, matrix }] : [];
  });
}

function set(graph: Graph, name: string, dims: number[], values: Parameters<typeof makeTensor>[2]): string {
  graph.initializers.set(name, makeTensor(name, dims, values));
  return name;
}

function replace(graph: Graph, node: OnnxNode, ...by: OnnxNode[]): void {
  for (const [index, one] of by.entries()) one.name = `${node.name}_${index}`;
  graph.nodes.splice(graph.nodes.indexOf(node), 1, ...by);
}

function inBlocks(bits: 4 | 8, size: number, zeroPoints: boolean) {
  return (model: OnnxModel): void => {
    const names = new Map(products(model.graph).map(({ node }) => [node.outputs[0], node.name]));
    blockWeights(model, { bits, size, zeroPoints });
    for (const node of model.graph.nodes.filter(({ op }) => op === 'MatMulNBits')) {
      node.name = `${names.get(node.outputs[0] ?? '')}_Q${bits}`;
      node.attributes.delete('accuracy_level'); // computed in floats, as most files are published
    }
  };
}

/** Gives all matrices random blocks of NF4 or FP4. */
function inBnb4(type: 0 | 1) {
  return ({ graph, opsets }: OnnxModel): void => {
    opsets.set(MS, 1);
    for (const { node, matrix } of products(graph)) {
      const [K = 0, N = 0] = matrix.dims;
      const levels = set(graph, `${matrix.name}_Bnb4`, [(K * N) / 2], bytes((K * N) / 2));
      const scales = set(
        graph,
        `${matrix.name}_absmax`,
        [(K * N) / 16],
        Float32Array.from({ length: (K * N) / 16 }, random),
      );
      const attributes = { K, N, block_size: 16, quant_type: type };
      replace(
        graph,
        node,
        makeNode('MatMulBnb4', [node.inputs[0] ?? '', levels, scales], node.outputs, attributes, MS),
      );
    }
  };
}

/**
 * Makes all matrices of 8 bits: for dynamic quantisation, as onnxruntime makes it, or read through `DequantizeLinear`
 * (`asFloats`); or (`exact`) of the same numbers in floats, because onnxruntime rounds activations for both.
 */
function inIntegers(signed: boolean, ofColumns: boolean, asFloats = false) {
  return ({ graph }: OnnxModel, exact: boolean): void => {
    for (const { node, matrix } of products(graph)) {
      const [rows = 0, columns = 0] = matrix.dims;
      const count = ofColumns ? columns : 1;
      const scales = Float32Array.from({ length: count }, () => (0.5 + random()) / 1024);
      const raw = bytes(rows * columns);
      const [levels, zeros] = signed ? [new Int8Array(raw.buffer), new Int8Array(count)] : [raw, bytes(count)];
      const dims = ofColumns ? [count] : [];
      const [x = '', output = ''] = [node.inputs[0], node.outputs[0]];
      if (exact) {
        const floats = Float32Array.from(levels, (level, i) => {
          const at = ofColumns ? i % columns : 0;
          return (level - (zeros[at] ?? 0)) * (scales[at] ?? 0);
        });
        set(graph, matrix.name, [rows, columns], floats);
        continue;
      }
      set(graph, `${matrix.name}_quantized`, [rows, columns], levels);
      set(graph, `${matrix.name}_scale`, dims, scales);
      set(graph, `${matrix.name}_zero_point`, dims, zeros);
      if (asFloats) {
        const inputs = ['quantized', 'scale', 'zero_point'].map((part) => `${matrix.name}_${part}`);
        const read = makeNode('DequantizeLinear', inputs, [`${matrix.name}_floats`], { axis: 1 });
        replace(graph, node, read, makeNode('MatMul', [x, `${matrix.name}_floats`], [output]));
        continue;
      }
      const [quantised, both] = [[`${x}_q`, `${x}_s`, `${x}_z`], `${output}_scales`];
      if (!graph.nodes.some(({ outputs }) => outputs.includes(`${x}_q`))) {
        graph.nodes.splice(graph.nodes.indexOf(node), 0, makeNode('DynamicQuantizeLinear', [x], quantised));
      }
      replace(
        graph,
        node,
        makeNode(
          'MatMulInteger',
          [quantised[0] ?? '', `${matrix.name}_quantized`, quantised[2] ?? '', `${matrix.name}_zero_point`],
          [`${output}_i`],
        ),
        makeNode('Cast', [`${output}_i`], [`${output}_f`], { to: DataType.float }),
        makeNode('Mul', [quantised[1] ?? '', `${matrix.name}_scale`], [both]),
        makeNode('Mul', [`${output}_f`, both], [output]),
      );
    }
  };
}

/** Gives the embeddings random levels of 4 bits, with zero points or without. */
function embeddingsOf(dataType: number, zeroPoints: boolean) {
  return ({ graph, opsets }: OnnxModel): void => {
    opsets.set('', 21); // the first with these types
    opsets.set(MS, 1);
    const node = graph.nodes.find(({ inputs }) => inputs[1] === 'input_ids') ?? expect.fail('there are embeddings');
    const [table = ''] = node.inputs;
    const [rows = 0, columns = 0] = graph.initializers.get(table)?.dims ?? [];
    const blocks = columns / 16;
    const levels = (part: string, dims: [number, number]): string => {
      const name = set(graph, `${table}_${part}`, dims, bytes((dims[0] * dims[1]) / 2));
      graph.initializers.set(name, { ...(graph.initializers.get(name) ?? expect.fail()), dataType });
      return name;
    };
    const factors = Float32Array.from({ length: rows * blocks }, () => (0.5 + random()) / 64);
    const inputs = [levels('Q4', [rows, columns]), 'input_ids', set(graph, `${table}_scales`, [rows, blocks], factors)];
    if (zeroPoints) inputs.push(levels('zeros', [rows, blocks]));
    const attributes = { block_size: 16, gather_axis: 0, quantize_axis: 1 };
    replace(graph, node, makeNode('GatherBlockQuantized', inputs, node.outputs, attributes, MS));
  };
}

const unchanged = (): void => {};
type Change = (model: OnnxModel, exact: boolean) => void;

/** Writes a fixture's graph, changed, beside its configuration. Returns the folder. */
async function published(name: string, fixture: string, change: Change, exact: boolean): Promise<string> {
  const target = join(folder, name);
  const model = readModel(join(modelFixture(fixture), 'onnx/model.onnx'));
  change(model, exact);
  await plannedGraphs([{ file: 'model.onnx', model }], 'weights.bin').write(join(target, 'onnx'), () => {}, undefined);
  cpSync(join(modelFixture(fixture), 'config.json'), join(target, 'config.json'));
  return target;
}

/** Returns the largest difference of two lists of logits, as a share of the largest. */
function distance(ours: Float32Array[], theirs: Float32Array[]): number {
  const size = Math.max(...theirs.flatMap((row) => Array.from(row, Math.abs)));
  const apart = theirs.flatMap((row, at) =>
    Array.from(row, (value, i) => Math.abs(value - (ours[at]?.[i] ?? Number.NaN))),
  );
  return Math.max(...apart) / size;
}

const [QWEN2, GEMMA3, EXPERTS] = ['optimum/qwen2', 'optimum/gemma3', '../families/optimum/qwen3-moe'];

test.each<[string, string, Change]>([
  ['blocks of 4 bits', QWEN2, inBlocks(4, 16, false)],
  ['blocks of 4 bits with zero points', GEMMA3, inBlocks(4, 32, true)],
  ['blocks of 8 bits', EXPERTS, inBlocks(8, 32, false)],
  ['NF4', EXPERTS, inBnb4(1)],
  ['FP4', QWEN2, inBnb4(0)],
  ['embeddings of INT4', QWEN2, embeddingsOf(DataType.int4, false)],
  ['embeddings of INT4 with zero points', QWEN2, embeddingsOf(DataType.int4, true)],
  ['embeddings of UINT4', QWEN2, embeddingsOf(DataType.uint4, false)],
  ['8 bits for dynamic quantisation', QWEN2, inIntegers(true, false)],
  ['unsigned 8 bits, a scale for each output', EXPERTS, inIntegers(false, true)],
  ['DequantizeLinear', QWEN2, inIntegers(false, true, true)],
])(
  `a graph that is written from %s in %s computes what the published one does (seed ${seed})`,
  async (name, fixture, change) => {
    const before = state;
    const source = await published(name, fixture, change, false);
    state = before;
    const reference = await published(`${name} in floats`, fixture, change, true);
    const own = await compileFixture(source, 'float', undefined, { slots: 1 });
    expect(own.manifest.choice.reason).not.toMatch(/published graph/);
    expect(own.manifest.path).toBe('packed');
    const foreign = await publishedModel(join(reference, 'onnx/model.onnx'));
    const tokens = Array.from({ length: 24 }, () => Math.floor(random() * 250));
    expect(distance(await compiledModel(own).logits(tokens), await foreign.logits(tokens))).toBeLessThan(1e-5);
    await own.close();
    await foreign.close();
  },
);

test.each<[string, Change, RegExp]>([
  [
    'two weights of one name',
    ({ graph }) => {
      const [first, second] = products(graph);
      if (first && second) second.node.name = first.node.name;
    },
    /two weights called "model.layers.0.self_attn.q_proj.weight"/,
  ],
  [
    'a product whose weights have no name',
    ({ graph }) => {
      const [first] = products(graph);
      if (first) first.node.name = '';
    },
    /lacks the weight "model.layers.0.self_attn.q_proj.weight"/,
  ],
  [
    'a bias that config.json does not describe',
    ({ graph }) => {
      const node = products(graph).find((one) => one.node.name.includes('o_proj'))?.node;
      const [output = ''] = node?.outputs ?? [];
      if (!node) return;
      node.outputs = [`${output}/product`];
      const bias = set(graph, 'bias', [32], new Float32Array(32).fill(0.5));
      const add = {
        ...makeNode('Add', [`${output}/product`, bias], [output]),
        name: node.name.replace('MatMul', 'Add'),
      };
      graph.nodes.splice(graph.nodes.indexOf(node) + 1, 0, add);
    },
    /has the weight "model.layers.0.self_attn.o_proj.bias", which its configuration does not explain/,
  ],
  [
    'a name of any length',
    ({ graph }) => {
      for (const { node } of products(graph).slice(0, 2)) node.name = `/model/${'x'.repeat(5000)}/MatMul`;
    },
    /two weights called "model.x{200}/,
  ],
  [
    'experts where config.json describes none',
    ({ graph }) => graph.nodes.push(makeNode('QMoE', [], ['experts'], {}, MS)),
    /has QMoE with other numbers/,
  ],
])('a graph with %s runs as published, and the reason is told', async (name, change, why) => {
  const source = await published(name, 'optimum/qwen2', change, false);
  const { foreign } = await planModel(source, 'float', { maxPromptLen: 64, slots: 1 });
  expect(foreign).toMatch(why);
  expect(foreign?.length).toBeLessThanOrEqual(300);
});

test.each([
  [
    'config.json of another family',
    JSON.stringify({ model_type: 'nemotron' }),
    /^config.json says model_type: "nemotron", for which no graph is written$/,
  ],
  ['a key that is not known', JSON.stringify({ model_type: 'llama', strange: 1, num_hidden_layers: 2 }), /strange: 1/],
  ['no config.json', null, /no config.json/],
])('with %s, the published graph runs', async (name, config, why) => {
  const source = await published(name, 'optimum/qwen2', unchanged, false);
  rmSync(join(source, 'config.json'));
  if (config) writeFileSync(join(source, 'config.json'), config);
  writeFileSync(join(source, 'genai_config.json'), JSON.stringify({ model: { context_length: 512 } }));
  const { foreign } = await planModel(source, 'float', { maxPromptLen: 64, slots: 1 });
  expect(foreign).toMatch(why);
});

test('a copy of the embeddings that is the output head, too, is stored once', async () => {
  const source = await published('tied', 'optimum/qwen2', unchanged, false);
  const { bytes: tied } = await planModel(source, 'float', { maxPromptLen: 64, slots: 1 });
  const model = readModel(join(source, 'onnx/model.onnx'));
  const head = products(model.graph).at(-1)?.matrix;
  const values = readFloats(head ?? expect.fail('there is a head'));
  const apart = await published(
    'apart',
    'optimum/qwen2',
    ({ graph }) =>
      set(
        graph,
        head?.name ?? '',
        head?.dims ?? [],
        values.map((value) => 2 * value),
      ),
    false,
  );
  const { bytes: both } = await planModel(apart, 'float', { maxPromptLen: 64, slots: 1 });
  expect(both - tied).toBe(values.byteLength);
});

test.each(['falcon3', 'gemma2', 'gpt-oss', 'granite4', 'lfm2', 'lfm2-moe', 'qwen2', 'qwen3'])(
  "a graph of onnxruntime-genai's builder is written anew where config.json is beside it: %s",
  async (name) => {
    const source = join(folder, `genai-${name}`);
    cpSync(modelFixture(`../families/genai/${name}`), source, { recursive: true });
    cpSync(join(modelFixture(`../families/safetensors/${name}`), 'config.json'), join(source, 'config.json'));
    const own = await compileFixture(source, 'float', undefined, { slots: 1 });
    expect(own.manifest.choice.reason).not.toMatch(/published graph/);
    for (const { prompt, greedy } of goldenCases(`../families/genai/${name}`).slice(0, 2)) {
      expect(await continueGreedily(own, prompt, greedy.length)).toEqual(greedy);
    }
    await own.close();
  },
);

/** Writes a changed graph of onnxruntime-genai's builder, with config.json beside it or without. Returns the folder. */
async function builderFolder(name: string, fixture: string, change: Change, withConfig: boolean): Promise<string> {
  const target = join(folder, `${name} of ${basename(fixture)}, ${withConfig ? 'written' : 'published'}`);
  const model = readModel(join(modelFixture(fixture), 'model.onnx'));
  change(model, false);
  await plannedGraphs([{ file: 'model.onnx', model }], 'weights.bin').write(target, () => {}, undefined);
  cpSync(join(modelFixture(fixture), 'genai_config.json'), join(target, 'genai_config.json'));
  const checkpoint = modelFixture(`../families/safetensors/${basename(fixture)}`);
  if (withConfig) cpSync(join(checkpoint, 'config.json'), join(target, 'config.json'));
  return target;
}

/** Gives all experts random levels, with a scale for each block, or for each row if `size` is 0. */
function expertsInBlocks(bits: 4 | 8, size: number, zeroPoints: boolean) {
  return ({ graph }: OnnxModel): void => {
    for (const node of graph.nodes.filter(({ op }) => op === 'MoE')) {
      const [x = '', scores = '', gateUp = '', gateUpBias = '', down = '', downBias = ''] = node.inputs;
      const zeros: string[] = [];
      const blocks = (matrix: string, bias: string): string[] => {
        const [count = 0, rows = 0, columns = 0] = graph.initializers.get(matrix)?.dims ?? [];
        const levels = (part: string, width: number) =>
          set(graph, `${matrix}/${part}`, [count, rows, width], bytes(count * rows * width));
        const width = size === 0 ? 1 : columns / size;
        const scales = Float32Array.from({ length: count * rows * width }, () => (0.5 + random()) / 2 ** (bits + 1));
        if (zeroPoints) zeros.push(levels('zeros', Math.ceil((width * bits) / 8)));
        const scale = set(graph, `${matrix}/scales`, size === 0 ? [count, rows] : [count, rows, width], scales);
        return [levels('levels', (columns * bits) / 8), scale, bias];
      };
      const inputs = [x, scores, ...blocks(gateUp, gateUpBias), ...blocks(down, downBias), '', '', '', ...zeros];
      const stored = makeNode('QMoE', inputs, node.outputs, {
        ...{ expert_weight_bits: bits, ...(size === 0 ? {} : { block_size: size }) },
      });
      for (const matrix of [gateUp, down]) graph.initializers.delete(matrix);
      Object.assign(node, { op: 'QMoE', inputs, attributes: new Map([...node.attributes, ...stored.attributes]) });
    }
  };
}

const [LFM2_MOE, GPT_OSS] = ['../families/genai/lfm2-moe', '../families/genai/gpt-oss'];

test.each<[string, string, Change]>([
  ["the builder's own blocks", '../families/genai-int4/lfm2-moe', unchanged],
  ['floats', GPT_OSS, unchanged],
  ['blocks of 4 bits', LFM2_MOE, expertsInBlocks(4, 16, false)],
  ['blocks of 4 bits with zero points', GPT_OSS, expertsInBlocks(4, 16, true)],
  ['blocks of 8 bits', GPT_OSS, expertsInBlocks(8, 16, false)],
  ['rows of 4 bits', GPT_OSS, expertsInBlocks(4, 0, false)],
  ['rows of 8 bits', LFM2_MOE, expertsInBlocks(8, 0, false)],
])(
  `experts in one operator compute in a written graph what they do in the published one: %s of %s (seed ${seed})`,
  async (name, fixture, change) => {
    const before = state;
    const own = await compileFixture(await builderFolder(name, fixture, change, true), 'keep');
    state = before;
    const foreign = await compileFixture(await builderFolder(name, fixture, change, false), 'keep');
    expect(own.manifest.choice.reason).not.toMatch(/published graph/);
    expect(foreign.manifest.choice.reason).toMatch(/published graph/);
    const tokens = Array.from({ length: 24 }, () => Math.floor(random() * 250));
    const [ours, theirs] = [await compiledModel(own).logits(tokens), await compiledModel(foreign).logits(tokens)];
    expect(distance(ours, theirs)).toBeLessThan(1e-5);
    await own.close();
    await foreign.close();
  },
);

/** Sets an attribute of all experts. */
const expertsWith =
  (name: string, value: Parameters<typeof attributeFields>[1]) =>
  ({ graph }: OnnxModel): void => {
    for (const node of graph.nodes.filter(({ op }) => op === 'MoE')) {
      node.attributes.set(name, attributeFields(name, value));
    }
  };

test.each<[string, string, Change, RegExp]>([
  ['more experts for a token', GPT_OSS, expertsWith('k', 3), /MoE with other numbers/],
  ['another factor', GPT_OSS, expertsWith('activation_alpha', { float: 1.5 }), /MoE with other numbers/],
  ['a bound', LFM2_MOE, expertsWith('swiglu_limit', { float: 7 }), /MoE with other numbers/],
  ['gate before up', LFM2_MOE, expertsWith('swiglu_fusion', 2), /MoE with other numbers/],
  ['an attribute that is not known', LFM2_MOE, expertsWith('strange', 1), /MoE with other numbers/],
  [
    'biases that config.json does not describe',
    LFM2_MOE,
    ({ graph }) => set(graph, 'model.layers.1.moe.experts.down_proj.bias', [4, 32], new Float32Array(128).fill(1)),
    /has the weight "model.layers.1.moe.experts.down_proj_bias", which its configuration does not explain/,
  ],
])('experts with %s run as published: %s', async (name, fixture, change, why) => {
  const source = await builderFolder(name, fixture, change, true);
  const { foreign } = await planModel(source, 'float', { maxPromptLen: 64, slots: 1 });
  expect(foreign).toMatch(why);
});

test("the bundled model's graph is written from its blocks, which embeddings and head share", async () => {
  const source = join(import.meta.dirname, '../../models/starter');
  const {
    foreign,
    published: precision,
    bytes: size,
  } = await planModel(source, 'keep', { maxPromptLen: 64, slots: 1 });
  expect([foreign, precision]).toEqual([null, 'int4']);
  // Its rotary tables are 2 MiB; a second copy of the head's blocks would be 4 MiB.
  expect(size).toBeLessThan(25e6);
});
