import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { type Manifest, readManifest, type StaticGraphs, writeManifest } from '../compile/manifest.ts';
import { kernelShapes } from '../compile/static-shapes.ts';
import type { KvShape } from '../engine/cache/kv-shape.ts';
import { Sequence } from '../engine/cache/sequence.ts';
import type { Forward } from '../engine/forward/forward.ts';
import { StaticForward } from '../engine/forward/static/static-forward.ts';
import { openStatic } from '../engine/forward/static/static-sessions.ts';
import { kvShape, sessionOptions } from '../engine/model.ts';
import { logitError, spreadTokens } from '../engine/self-check/self-check.ts';
import type { KvType } from '../graph/graph-builder.ts';
import { identityOf, type OpenDevice, openDevice } from '../ort-plugin/open-device.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';

export interface DeviceCompileOptions {
  /** Called before each graph, and before the measurement as the last step, with the number of steps done. */
  onStep?(done: number, total: number): void;
  /**
   * Type of keys and values to compile for. `float16` halves what each run copies to the device; if the device refuses
   * it, `float32` is used. Default: `float16`, and `float32` for a device that is a CPU.
   */
  kvType?: KvType;
}

type StaticManifest = Manifest & { static: StaticGraphs };

/**
 * Compiles the static graphs of the model in `folder` to the device's own binaries (EPContext), or chooses among the
 * graphs if the device runs them with its own kernels. Then measures the speed and error of the device against the CPU.
 * Graphs that the device does not need are removed, so the folder then serves this device only. Returns the manifest,
 * which is also written; it names the graphs or binaries, what they depend on, and the measurements. Throws
 * `engine_failed` if the model has no static graphs, the plugin or device cannot be opened, or the device cannot run a
 * whole graph.
 */
export async function compileForDevice(
  folder: string,
  target: PluginTarget,
  options: DeviceCompileOptions = {},
): Promise<Manifest> {
  const manifest = readManifest(folder);
  if (!manifest.static)
    throw new AssayError(
      'engine_failed',
      'Only a model over fixed shapes is compiled for a device. Delete its compiled files (assay rm --compiled-only <model>) and load it again.',
    );
  const { halfBodies = [], anyShape, ...floats } = manifest.static;
  const { kvType = target.hardware === 'CPU' ? 'float32' : 'float16' } = options;
  const [preferred, fallback] = candidates(manifest.static, target, kvType);
  const steps = graphsOf(preferred).length + 1;
  const device = await openDevice(target);
  const identity = identityOf(target, device.device);
  let graphs = preferred;
  try {
    const compile = graphCompiler(folder, device, target, options, steps);
    if (!fallback) await compileBodies(compile, preferred);
    else if (!(await accepts(compile, preferred))) {
      if (target.compiles) removeBinaries(folder, preferred);
      graphs = fallback;
      await compileBodies(compile, fallback);
    }
    await compile(graphs.head.graph, steps - 2);
  } catch (cause) {
    if (cause instanceof AssayError) throw cause;
    const refused = `The ${target.hardware} (${target.plugin}) cannot compile this model. The log has the vendor's words; use another device with --device.`;
    throw new AssayError('engine_failed', refused, { cause });
  } finally {
    device.close();
  }
  const compiled = target.compiles ? binariesOf(graphs) : graphs;
  options.onStep?.(steps - 1, steps);
  const result: StaticManifest = { ...manifest, static: compiled };
  const figures = await figuresOf(folder, { ...manifest, static: floats }, result, target);
  result.compiledFor = { identity, ...figures };
  writeManifest(folder, result);
  const given = [...graphsOf(floats), ...halfBodies.map(({ graph }) => graph), ...Object.values(anyShape ?? {})];
  const used = new Set(graphsOf(compiled));
  for (const graph of given) if (!used.has(graph)) rmSync(join(folder, graph));
  return result;
}

/**
 * Returns the graphs to try on a device, the preferred ones first: those for the requested type of keys and values, and
 * those for 32 bits. A device with kernels of its own runs one graph in all shapes.
 */
function candidates(
  { halfBodies = [], anyShape, ...floats }: StaticGraphs,
  { compiles }: PluginTarget,
  kvType: KvType,
): [preferred: StaticGraphs, fallback?: StaticGraphs] {
  const longest = Math.max(...floats.bodies.map(({ past }) => past));
  const inAllShapes = (graph: string) => kernelShapes(longest).map((shape) => ({ graph, ...shape }));
  const open = compiles ? undefined : anyShape;
  const full = { ...floats, bodies: open ? inAllShapes(open.float32) : floats.bodies };
  const half = { ...floats, kvType: 'float16' as const, bodies: open ? inAllShapes(open.float16) : halfBodies };
  return kvType === 'float16' && half.bodies.length > 0 ? [half, full] : [full];
}

/** Returns the names of a model's graphs, each once: those of the layers, then the head. */
function graphsOf({ bodies, head }: StaticGraphs): string[] {
  return [...new Set([...bodies, head].map(({ graph }) => graph))];
}

/** Returns the graphs of a model with the names of their binaries. */
function binariesOf(graphs: StaticGraphs): StaticGraphs {
  return {
    ...graphs,
    bodies: graphs.bodies.map((body) => ({ ...body, graph: contextFile(body.graph) })),
    head: { ...graphs.head, graph: contextFile(graphs.head.graph) },
  };
}

/**
 * Compiles a graph, or tests that a device with kernels runs all of it. `done` is the number of earlier graphs. Throws
 * if the device does not accept the graph.
 */
type CompileGraph = (graph: string, done: number) => Promise<void>;

function graphCompiler(
  folder: string,
  device: OpenDevice,
  { compiles }: PluginTarget,
  { onStep }: DeviceCompileOptions,
  steps: number,
): CompileGraph {
  return async (graph, done) => {
    onStep?.(done, steps);
    const file = join(folder, contextFile(graph));
    const session = await device.session(join(folder, graph), compiles ? contextConfig(file) : {});
    session.release();
    if (!compiles) return;
    // Throws if the file is missing: a plugin that writes no binary reports no error, but the model would then be
    // compiled at each load.
    statSync(file);
  };
}

async function compileBodies(compile: CompileGraph, graphs: StaticGraphs): Promise<void> {
  for (const [done, graph] of graphsOf(graphs).slice(0, -1).entries()) await compile(graph, done);
}

/** Returns true if the device compiles all body graphs, and false if it refuses one. */
async function accepts(compile: CompileGraph, graphs: StaticGraphs): Promise<boolean> {
  try {
    await compileBodies(compile, graphs);
    return true;
  } catch {
    return false;
  }
}

/** Removes the binaries of the body graphs. A plugin may write several files for one graph; their names begin alike. */
function removeBinaries(folder: string, { bodies }: StaticGraphs): void {
  const stems = bodies.map(({ graph }) => contextFile(graph).replace(/\.onnx$/, ''));
  for (const name of readdirSync(folder)) {
    if (stems.some((stem) => name.startsWith(stem))) rmSync(join(folder, name));
  }
}

/**
 * Returns the session configuration that writes a graph's binary to a separate file. Source:
 * onnxruntime_session_options_config_keys.h ("ep.context_enable").
 */
function contextConfig(file: string): Record<string, string> {
  return { 'ep.context_enable': '1', 'ep.context_file_path': file, 'ep.context_embed_mode': '0' };
}

const contextFile = (graph: string): string => graph.replace(/\.onnx$/, '-device.onnx');

async function figuresOf(
  folder: string,
  onCpu: StaticManifest,
  onDevice: StaticManifest,
  plugin: PluginTarget,
): Promise<DeviceFigures> {
  const lookup = { ...(await sessionOptions()), executionProviders: ['cpu'] };
  const cpu = await openStatic(folder, onCpu, onCpu.static, { lookup });
  const device = await openStatic(folder, onDevice, onDevice.static, { lookup, plugin }).catch(
    async (error: unknown) => {
      await cpu.close();
      throw error;
    },
  );
  const side = ({ sessions }: typeof cpu, manifest: StaticManifest) => ({
    forward: new StaticForward(sessions, manifest, manifest.static),
    kv: kvShape(manifest),
  });
  try {
    return await compareDevices(side(device, onDevice), side(cpu, onCpu), onCpu.contextLength);
  } finally {
    await device.close();
    await cpu.close();
  }
}

/** Length of the measured prompt in tokens: more than the largest chunk of a static graph (128). */
const PROMPT_TOKENS = 200;
const BRANCHES = 3;
const BRANCH_TOKENS = 4;
/**
 * Maximum number of measurements of each device, of which the fastest counts. None starts after `REPEAT_MS`
 * milliseconds.
 */
const REPETITIONS = 3;
const REPEAT_MS = 5_000;

/**
 * Runs the same prompt and one step of several branches on the device and on the CPU. Returns the `logitError` of the
 * device's logits against the CPU's (null if it is not finite), and the milliseconds of the fastest of up to three such
 * runs on each.
 */
async function compareDevices(
  device: { forward: Forward; kv: KvShape },
  cpu: { forward: Forward; kv: KvShape },
  contextLength: number,
): Promise<DeviceFigures> {
  const count = Math.max(1, Math.min(PROMPT_TOKENS, contextLength - BRANCHES * BRANCH_TOKENS));
  const prompt = spreadTokens(cpu.forward.vocabSize, count);
  const [wanted, got] = [await measure(cpu, prompt), await measure(device, prompt)];
  const error = logitError(wanted.logits, got.logits);
  return { error: Number.isFinite(error) ? error : null, deviceMs: got.ms, cpuMs: wanted.ms };
}

async function measure(
  { forward, kv }: { forward: Forward; kv: KvShape },
  prompt: readonly number[],
): Promise<{ logits: Float32Array[]; ms: number }> {
  let logits: Float32Array[] = [];
  let ms = Number.POSITIVE_INFINITY;
  const began = performance.now();
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    const before = performance.now();
    logits = await promptAndBranches(forward, kv, prompt);
    ms = Math.min(ms, performance.now() - before);
    if (performance.now() - began > REPEAT_MS) break;
  }
  return { logits, ms };
}

/** Runs a prompt, then several branches after it. Returns the logits after the prompt and after each branch. */
async function promptAndBranches(forward: Forward, kv: KvShape, prompt: readonly number[]): Promise<Float32Array[]> {
  const sequence = new Sequence(kv, prompt.length + BRANCHES * BRANCH_TOKENS);
  for (const token of prompt) sequence.append(token, sequence.length - 1);
  const afterPrompt = (await forward.run([{ sequence, start: 0, rows: [prompt.length - 1] }])).slice(
    0,
    forward.vocabSize,
  );
  const ends: number[] = [];
  for (let branch = 0; branch < BRANCHES; branch++) {
    let parent = prompt.length - 1;
    for (const token of spreadTokens(forward.vocabSize, BRANCH_TOKENS, prompt.length + branch * BRANCH_TOKENS)) {
      parent = sequence.append(token, parent);
    }
    ends.push(parent);
  }
  const afterBranches = await forward.run([{ sequence, start: prompt.length, rows: ends }]);
  const rowOf = (row: number): Float32Array =>
    afterBranches.slice(row * forward.vocabSize, (row + 1) * forward.vocabSize);
  return [afterPrompt, ...ends.map((_, row) => rowOf(row))];
}
