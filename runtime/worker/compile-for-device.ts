import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { type Manifest, readManifest, type StaticGraphs, writeManifest } from '../compile/manifest.ts';
import { compareDevices } from '../engine/compare-devices.ts';
import { kvShape, sessionOptions } from '../engine/model.ts';
import { StaticForward } from '../engine/static-forward.ts';
import { openStatic } from '../engine/static-sessions.ts';
import type { KvType } from '../onnx/static/plain-attention.ts';
import { identityOf, type OpenDevice, openDevice } from '../ort-plugin/open-device.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';

export interface DeviceCompileOptions {
  /** Called before each graph, and before the measurement as the last step, with the number of steps done. */
  onStep?(done: number, total: number): void;
  signal?: AbortSignal;
  /**
   * Type of keys and values to compile for. `float16` halves what each run copies to the device; if the device refuses
   * it, `float32` is used. Default: `float16`, and `float32` for a device that is a CPU.
   */
  kvType?: KvType;
}

type StaticManifest = Manifest & { static: StaticGraphs };

/**
 * Compiles the static graphs of a model to the device's own binaries (EPContext), and measures the speed and error of
 * the device against the CPU. The binaries replace the graphs, so the folder then serves this device only. The manifest
 * names the binaries, what they depend on, and the measurements. Throws `engine_failed` if the device cannot run a
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
  const { halfBodies = [], ...floats } = manifest.static;
  const steps = floats.bodies.length + 2;
  const { kvType = target.hardware === 'CPU' ? 'float32' : 'float16' } = options;
  const device = await openDevice(target);
  const identity = identityOf(target, device.device);
  let graphs: StaticGraphs = floats;
  try {
    const compile = graphCompiler(folder, device, options, steps);
    if (kvType === 'float16' && halfBodies.length > 0) {
      const halves: StaticGraphs = { ...floats, kvType, bodies: halfBodies };
      if (await accepts(compile, halves, options.signal)) graphs = halves;
      else removeBinaries(folder, halves);
    }
    if (graphs === floats) await compileBodies(compile, floats);
    await compile(graphs.head.graph, steps - 2);
  } catch (cause) {
    if (cause instanceof AssayError) throw cause;
    const refused = `The ${target.hardware} (${target.plugin}) cannot compile this model. The log has the vendor's words; use another device with --device.`;
    throw new AssayError('engine_failed', refused, { cause });
  } finally {
    device.close();
  }
  const compiled: StaticGraphs = {
    ...graphs,
    bodies: graphs.bodies.map((body) => ({ ...body, graph: contextFile(body.graph) })),
    head: { ...graphs.head, graph: contextFile(graphs.head.graph) },
  };
  options.onStep?.(steps - 1, steps);
  const result: StaticManifest = { ...manifest, static: compiled };
  const figures = await figuresOf(folder, { ...manifest, static: floats }, result, target);
  result.compiledFor = { identity, ...figures };
  writeManifest(folder, result);
  for (const { graph } of [...floats.bodies, ...halfBodies, floats.head]) rmSync(join(folder, graph));
  return result;
}

/** Compiles a graph; `done` is the number of graphs that are compiled already. */
type CompileGraph = (graph: string, done: number) => Promise<void>;

function graphCompiler(
  folder: string,
  device: OpenDevice,
  { onStep, signal }: DeviceCompileOptions,
  steps: number,
): CompileGraph {
  return async (graph, done) => {
    signal?.throwIfAborted();
    onStep?.(done, steps);
    const file = join(folder, contextFile(graph));
    const session = await device.session(join(folder, graph), contextConfig(file));
    session.release();
    // Throws if the file is missing: a plugin that writes no binary reports no error, but the model would then be
    // compiled at each load.
    statSync(file);
  };
}

async function compileBodies(compile: CompileGraph, { bodies }: StaticGraphs): Promise<void> {
  for (const [done, { graph }] of bodies.entries()) await compile(graph, done);
}

/**
 * Returns true if the device compiles all body graphs, and false if it refuses one. Throws if the compile was aborted.
 */
async function accepts(compile: CompileGraph, graphs: StaticGraphs, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await compileBodies(compile, graphs);
    return true;
  } catch {
    signal?.throwIfAborted();
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
