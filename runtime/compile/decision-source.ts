import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readGguf } from '../checkpoint/gguf/read-gguf.ts';
import { mergeLora } from '../checkpoint/lora.ts';
import { unpackMxfp4 } from '../checkpoint/mxfp4.ts';
import { readCheckpoint, readSafetensors } from '../checkpoint/safetensors.ts';
import type { StoredTensor, WeightSource } from '../checkpoint/weight-source.ts';
import { readAdapter } from '../contracts/adapter.ts';
import type { DecisionContract, LastLayer } from '../contracts/contract.ts';
import { contractText } from '../contracts/contract-text.ts';
import { readContractFiles } from '../contracts/read-files.ts';
import type { Readout } from '../graph/decoder.ts';
import { ggufWeights } from '../graph/gguf.ts';
import { ADAPTER_WEIGHTS, BACKBONE_FOLDER, GGUF_FILE } from '../store/model-files.ts';
import { loadTextModel } from '../text/text-model.ts';

/** Returns the folder of a checkpoint that has the configuration and the weights of its language model. */
export function weightsFolder(source: string): string {
  const backbone = join(source, BACKBONE_FOLDER);
  return existsSync(backbone) ? backbone : source;
}

/**
 * Locates the weights of a checkpoint, with its adapter added to its base model's if it has one. Throws `engine_failed`
 * for files that are damaged or do not fit each other, and `RefusedContract` for an adapter of an unknown kind.
 */
export async function sourceWeights(source: string): Promise<WeightSource> {
  const gguf = join(source, GGUF_FILE);
  if (existsSync(gguf)) return ggufWeights(readGguf(gguf));
  const base = unpackMxfp4(readCheckpoint(weightsFolder(source)));
  const adapter = join(source, ADAPTER_WEIGHTS);
  if (!existsSync(adapter)) return base;
  const files = await readContractFiles(new Set(readdirSync(source)), (name) => join(source, name));
  return mergeLora(base, readSafetensors(adapter), readAdapter(files).scale);
}

/**
 * Returns what the graph of a decision model must compute: the outputs of its own last layer, or the logits of its
 * labels, or the states that another network reads.
 */
export async function readoutOf(source: string, contract: DecisionContract): Promise<Readout> {
  if (contract.joint) return { states: true };
  if (contract.lastLayer) return linearReadout(contract.lastLayer(source));
  const text = await loadTextModel(source);
  const { labels } = contract.open(contractText(text, contract.maxTokens), source);
  if (!labels) throw new Error('a contract without a last layer names its labels');
  return { tokens: labels };
}

/** Epsilon of the normalisation before all known heads. */
const EPSILON = 1e-5;

function linearReadout({ width, normalised, weight, bias }: LastLayer): Readout {
  const tensor = (name: string, values: Float32Array, dims: number[]): StoredTensor => ({
    name: `readout/${name}`,
    dtype: 'F32',
    dims,
    data: { bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) },
  });
  return {
    weight: tensor('weight', weight, [width, weight.length / width]),
    ...(bias ? { bias: tensor('bias', bias, [width]) } : {}),
    ...(normalised ? { norm: { epsilon: EPSILON } } : {}),
  };
}
