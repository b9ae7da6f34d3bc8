import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../lib/at.ts';
import { readCheckpoint } from '../../runtime/checkpoint/safetensors.ts';
import type { WeightSource } from '../../runtime/checkpoint/weight-source.ts';
import { plannedGraphs } from '../../runtime/compile/planned-graphs.ts';
import { findEncoderContract } from '../../runtime/contracts/encoder-contracts.ts';
import { buildEncoder, encoderRefusal } from '../../runtime/graph/encoder-graph.ts';
import { buildGliner2 } from '../../runtime/graph/gliner2-heads.ts';
import type { OnnxModel } from '../../runtime/onnx/format/model.ts';
import { formulaSafetensors, valuesOf, type WeightShapes } from './formula-weights.ts';

/* Graphs of encoders with many shapes compute what PyTorch does (tests/fixtures/encoder-graphs/make.py). */

interface Golden {
  rows: number[][];
  encoders: { config: Record<string, unknown>; weights: WeightShapes; logits: number[][] }[];
  counters: { counter: string; weights: WeightShapes; queries: number[][] }[];
}
const GOLDEN: Golden = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/encoder-graphs/graphs.json'), 'utf8'),
);
const TOLERANCE = 1e-4;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-graphs-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function checkpoint(weights: WeightShapes): WeightSource {
  const own = mkdtempSync(join(folder, 'checkpoint-'));
  writeFileSync(join(own, 'model.safetensors'), formulaSafetensors(weights));
  return readCheckpoint(own);
}

async function outputOf(model: OnnxModel, feeds: Record<string, Tensor>): Promise<number[]> {
  const own = mkdtempSync(join(folder, 'graph-'));
  await plannedGraphs([{ file: 'model.onnx', model }], 'model.bin').write(own, () => undefined, undefined);
  const session = await InferenceSession.create(join(own, 'model.onnx'));
  const [output] = Object.values(await session.run(feeds));
  await session.release();
  return [...(output!.data as Float32Array)];
}

function expectNear(found: readonly number[], wanted: readonly number[]): void {
  expect(found).toHaveLength(wanted.length);
  for (const [i, value] of wanted.entries()) expect(Math.abs(at(found, i) - value)).toBeLessThan(TOLERANCE);
}

const described = GOLDEN.encoders.map(({ config, ...rest }, i) => ({
  ...rest,
  config,
  name: `${i}: ${config.model_type}`,
}));

it.each(described)('the encoder $name answers rows of several lengths as PyTorch does', async (one) => {
  const { config, weights, logits } = one;
  const json = { 'config.json': config };
  const contract = findEncoderContract({ paths: new Set(['config.json']), json })!;
  const { rows } = GOLDEN;
  const width = Math.max(...rows.map(({ length }) => length));
  const tensor = (fill: (row: number[], place: number) => number) =>
    new Tensor(
      'int64',
      BigInt64Array.from(
        rows.flatMap((row) => Array.from({ length: width }, (_, place) => fill(row, place))),
        BigInt,
      ),
      [rows.length, width],
    );
  const feeds = {
    input_ids: tensor((row, place) => row[place] ?? 0),
    attention_mask: tensor((row, place) => (place < row.length ? 1 : 0)),
  };
  expectNear(await outputOf(buildEncoder(contract, config, checkpoint(weights)), feeds), logits.flat());
});

it.each(GOLDEN.counters)('the counter $counter of GLiNER2 makes the queries of the library', async (one) => {
  const config = { ...at(GOLDEN.encoders, GOLDEN.encoders.length - 1).config, hidden_size: 8, num_attention_heads: 2 };
  const model = buildGliner2('count_embed_all', config, checkpoint(one.weights), 64);
  const labels = new Tensor('float32', Float32Array.from(valuesOf(99, 16)), [2, 8]);
  const queries = await outputOf(model, { label_embeddings: labels });
  const kept = [0, 1, 19].map((instance) => queries.slice(instance * 16, (instance + 1) * 16));
  expectNear(kept.flat(), one.queries.flat());
});

describe('a configuration that no graph is written for', () => {
  const [modernbert, deberta] = ['modernbert', 'deberta-v2'].map(
    (type) => GOLDEN.encoders.find(({ config }) => config.model_type === type)!.config,
  );
  it.each([
    [modernbert, { hidden_activation: 'silu' }],
    [modernbert, { classifier_pooling: 'max' }],
    [modernbert, { local_attention: 1 }],
    [modernbert, { rope_parameters: { full_attention: { rope_type: 'linear', factor: 2 } } }],
    [modernbert, { model_type: 'bert' }],
    [modernbert, { unheard_of: 1 }],
    [deberta, { share_att_key: false }],
    [deberta, { pos_att_type: 'c2p' }],
    [deberta, { position_buckets: -1 }],
    [deberta, { position_biased_input: true }],
    [deberta, { norm_rel_ebd: 'none' }],
    [deberta, { conv_kernel_size: 3 }],
    [deberta, { type_vocab_size: 2 }],
    [deberta, { hidden_act: 'relu' }],
    [deberta, { pooler_hidden_act: 'tanh' }],
    [deberta, { embedding_size: 16 }],
  ])('is refused by name: %#', (config, part) => {
    expect(encoderRefusal(config)).toBeNull();
    expect(encoderRefusal({ ...config, ...part })).toContain(`config.json says ${Object.keys(part)[0]}`);
  });
});
