import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import { readCheckpoint, readSafetensors, SINGLE_FILE } from '../checkpoint/safetensors.ts';
import {
  choiceOf,
  choosePrecision,
  type FixedPrecision,
  isAccurate,
  type MeasuredPrecision,
  precisionTiers,
  refuseUseless,
  UNUSABLE_ERROR,
} from '../compile/choose-precision.ts';
import { COMPILER_VERSION, type EncoderManifest, REFERENCE_FILE, writeManifest } from '../compile/manifest.ts';
import { writtenGraph } from '../compile/plan-model.ts';
import { type PlannedGraphs, plannedGraphs } from '../compile/planned-graphs.ts';
import { convertWeights } from '../compile/weight-conversion.ts';
import { type DecisionContract, logSoftmax } from '../contracts/contract.ts';
import { type EncoderContract, graphRoles, rowTokens } from '../contracts/encoder-contracts.ts';
import type { Adapter } from '../encoder/adapter.ts';
import { JOINT_HEAD } from '../encoder/contracts/whole.ts';
import { type EncoderGraphs, GRAPH_INPUTS, openEncoderGraphs } from '../encoder/encoder-graphs.ts';
import { adapterInFolder } from '../encoder/open-adapter.ts';
import { probeLogits, probeMs } from '../encoder/probe.ts';
import { logitError } from '../engine/self-check/self-check.ts';
import { Refused } from '../graph/config-keys.ts';
import { buildEncoder, encoderConfig } from '../graph/encoder-graph.ts';
import { buildGliner2, GLINER2_ROLES } from '../graph/gliner2-heads.ts';
import { buildJointHead } from '../graph/joint-head.ts';
import type { Graph, OnnxModel } from '../onnx/format/model.ts';
import { readModel } from '../onnx/format/read-model.ts';
import { prune } from '../onnx/format/subgraph.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import { CandidateFolders } from './candidate-folders.ts';
import { type CompileOptions, lackForReference, shiftOf } from './compile-model.ts';

/**
 * Compiles a published encoder model for this machine's CPU: its graphs with weights in the requested precision. `auto`
 * takes the first precision of `int8`, `int8-blocks` and floats whose answers to a few questions are close to those in
 * floats. Returns the manifest, which is also written. Throws `engine_failed` for a model that cannot be compiled.
 */
export async function compileEncoder(
  options: CompileOptions,
  contract: EncoderContract | DecisionContract,
): Promise<EncoderManifest> {
  const { source, target, maxPromptLen, onStep, signal } = options;
  if (options.device !== 'CPU') throw unusable('a model of its kind runs on the CPU only');
  onStep?.({ step: 'reading', done: 0, total: 1 });
  const graphs = graphsIn(source, contract);
  const { adapter, pad } = await adapterInFolder(source, contract, new Set(Object.keys(graphs)));
  const float = await planGraphs(source, graphs, contract, 'float');
  const lack = lackForReference(float.bytes, target);
  const folders = new CandidateFolders(target, (step) => onStep?.(step), signal);
  const open = (folder: string): Promise<EncoderGraphs> => openEncoderGraphs(folder, { graphs }, { pad });
  folders.expect([...(lack === null ? [float] : [])]);
  const reference = lack === null ? await measured(await open(await folders.write('reference', float)), adapter) : null;
  const made: (MeasuredPrecision & { folder: string })[] = [];
  const tiers = precisionTiers(options, { published: 'float', hasReference: reference !== null });
  for (const precision of tiers.flat().filter((one) => one !== 'int4' || options.precision === 'int4')) {
    if (made.some(isAccurate)) break;
    const plan = await planGraphs(source, graphs, contract, precision);
    folders.expect([plan]);
    const folder = await folders.write(`candidate-${made.length}`, plan);
    const figures = await measured(await open(folder), adapter, reference?.logits);
    const shift = reference && !('name' in contract) ? { shift: shiftOf(...probabilities(figures, reference)) } : {};
    const one = {
      precision: plan.precision,
      folder,
      error: reference ? figures.error : null,
      ms: figures.ms,
      ...shift,
    };
    if (options.precision !== 'auto') refuseUseless(one);
    made.push(one);
  }
  const chosen = choosePrecision(made) ?? at(made, made.length - 1);
  folders.keep(chosen.folder);
  const manifest: EncoderManifest = {
    kind: 'encoder',
    version: COMPILER_VERSION,
    device: 'CPU',
    precision: chosen.precision,
    choice: choiceOf({ options, chosen, measured: made, lack }),
    maxPromptLen: Math.min(maxPromptLen, 'name' in contract ? rowTokens(contract) : contract.maxTokens),
    contract: 'name' in contract ? contract : null,
    graphs,
  };
  if (reference) writeFileSync(join(target, REFERENCE_FILE), JSON.stringify(reference.logits));
  writeManifest(target, manifest);
  return manifest;
}

/** Measures a model in one precision, and closes it: its logits, their error against a reference, and its time. */
async function measured(
  graphs: EncoderGraphs,
  adapter: Adapter,
  reference?: number[][],
): Promise<{ logits: number[][]; error: number; ms: number }> {
  try {
    const logits = await probeLogits(adapter, graphs);
    const error = reference ? logitError(reference, logits) : 0;
    return { logits, error: Number.isFinite(error) ? error : UNUSABLE_ERROR, ms: await probeMs(adapter, graphs) };
  } finally {
    await graphs.close();
  }
}

/** Returns the probabilities of the probe's options in a precision and in floats. */
function probabilities(...runs: readonly [{ logits: number[][] }, { logits: number[][] }]): [number[], number[]] {
  const [one, other] = runs.map(({ logits }) => logits.flatMap((row) => logSoftmax(row).map(Math.exp)));
  return [one ?? [], other ?? []];
}

/** Returns the file names of a model's graphs in its folder, by what they compute. */
function graphsIn(folder: string, contract: EncoderContract | DecisionContract): Record<string, string> {
  if (!('name' in contract)) {
    return contract.joint ? { encoder: 'model.onnx', [JOINT_HEAD]: 'joint_head.onnx' } : { model: 'model.onnx' };
  }
  for (const roles of graphRoles(contract)) {
    const found = roles.flatMap((role) => {
      const file = [`${role}.onnx`, `${role}_fp16.onnx`].find((name) => existsSync(join(folder, name)));
      return file === undefined ? [] : [[role, file] as const];
    });
    if (found[0]?.[0] === roles[0]) return Object.fromEntries(found);
  }
  if (contract.name === 'gliner2' && existsSync(join(folder, SINGLE_FILE))) {
    const roles = contract.checkpoint === 'spans' ? GLINER2_ROLES : GLINER2_ROLES.slice(0, 2);
    return Object.fromEntries(roles.map((role) => [role, `${role}.onnx`]));
  }
  if (existsSync(join(folder, SINGLE_FILE))) return { model: 'model.onnx' };
  throw unusable('there is no graph of it in 32 or 16 bits');
}

/** Reads a published graph, or writes the graph of a checkpoint. */
async function graphOf(
  source: string,
  role: string,
  file: string,
  contract: EncoderContract | DecisionContract,
): Promise<OnnxModel> {
  if (!('name' in contract)) {
    const { joint } = contract;
    if (role === JOINT_HEAD && joint) return buildJointHead(joint, readSafetensors(join(source, joint.file)));
    return (await writtenGraph(source, { maxPromptLen: contract.maxTokens, contract })).model;
  }
  if (!existsSync(join(source, file))) return checkpointGraph(source, role, contract);
  const model = readModel(join(source, file));
  checkGraph(contract, role, model.graph);
  return model;
}

/** Writes the graph of the checkpoint in a folder; its head may be in a file of its own. */
function checkpointGraph(source: string, role: string, contract: EncoderContract): OnnxModel {
  const json = ['encoder_config.json', 'config.json'].flatMap((name) =>
    existsSync(join(source, name)) ? [[name, JSON.parse(readFileSync(join(source, name), 'utf8'))] as const] : [],
  );
  const encoder = encoderConfig(Object.fromEntries(json));
  const head = join(source, 'head.safetensors');
  const weights = new Map([...readCheckpoint(source), ...(existsSync(head) ? readSafetensors(head) : [])]);
  try {
    if (typeof encoder !== 'object' || encoder === null) throw new Refused('config.json is not an object');
    if (contract.name === 'gliner2') return buildGliner2(role, encoder, weights, rowTokens(contract));
    return buildEncoder(contract, encoder, weights);
  } catch (error) {
    throw error instanceof Refused ? unusable(error.message) : error;
  }
}

/** Prepares the graphs of a model in a precision. Only the encoder is converted: its heads are small. */
async function planGraphs(
  source: string,
  graphs: Readonly<Record<string, string>>,
  contract: EncoderContract | DecisionContract,
  requested: FixedPrecision,
): Promise<PlannedGraphs & Pick<MeasuredPrecision, 'precision'>> {
  let precision: MeasuredPrecision['precision'] = 'float';
  const parts: PlannedGraphs[] = [];
  for (const [role, file] of Object.entries(graphs)) {
    const model = await graphOf(source, role, file, contract);
    if (isHalf(model)) toFloat32(model);
    if (role === 'model' || role === 'encoder') precision = convertWeights(model, 'input_ids', requested);
    prune(model.graph);
    parts.push(plannedGraphs([{ file, model }], `${role}.bin`));
  }
  return {
    precision,
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    async write(folder, onBytes, signal) {
      for (const part of parts) await part.write(folder, onBytes, signal);
    },
  };
}

/** Inputs and outputs that the graph of a contract must have. GLiNER2's encoder has other ones than its fused graph. */
const SIGNATURES: Readonly<Record<EncoderContract['name'], { inputs: readonly string[]; outputs: readonly string[] }>> =
  {
    laya: { inputs: ['marker_pos', 'marker_mask', 'qtype'], outputs: ['logits'] },
    julia: { inputs: ['marker_pos', 'marker_mask', 'qtype'], outputs: ['logits'] },
    jevhome: { inputs: ['marker_pos', 'qtype'], outputs: ['logits'] },
    opendecider: { inputs: [], outputs: ['logits'] },
    'decision-tune': { inputs: ['positions'], outputs: ['logits'] },
    nli: { inputs: [], outputs: ['logits'] },
    'open-decision': { inputs: [], outputs: ['choice_logits', 'score_logits'] },
    gliclass: { inputs: ['marker_pos'], outputs: ['logits'] },
    verdict: { inputs: ['marker_pos'], outputs: ['logits'] },
    'open-jev': { inputs: ['seg', 'pair_q', 'pair_opt'], outputs: ['logits'] },
    gliner2: { inputs: ['marker_positions'], outputs: ['logits'] },
  };

/** Throws `engine_failed` if a graph lacks an input or output of its contract, or has an input that is not known. */
function checkGraph({ name }: EncoderContract, role: string, { inputs, outputs }: Graph): void {
  if (role !== 'model' && role !== 'encoder') return;
  const names = new Set(inputs.map((input) => input.name));
  const results = new Set(outputs.map((output) => output.name));
  const unknown = [...names].find((input) => !GRAPH_INPUTS.has(input));
  if (unknown !== undefined) throw unusable(`its graph has an input ${unknown}, which is not known`);
  const needed = role === 'encoder' ? { inputs: [], outputs: [] } : SIGNATURES[name];
  const missing = ['input_ids', 'attention_mask', ...needed.inputs].find((input) => !names.has(input));
  if (missing !== undefined) throw unusable(`its graph has no input ${missing}, which a ${name} model needs`);
  const lacking = needed.outputs.find((output) => !results.has(output));
  if (lacking !== undefined) throw unusable(`its graph has no output ${lacking}, which a ${name} model needs`);
}
