import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AssayError } from '../../lib/errors.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';
import { type Manifest, readManifest, type StaticGraphs, writeManifest } from '../compile/manifest.ts';
import { compareDevices } from '../engine/compare-devices.ts';
import { kvShape, sessionOptions } from '../engine/model.ts';
import { StaticForward } from '../engine/static-forward.ts';
import { openStatic } from '../engine/static-sessions.ts';
import { identityOf, openDevice } from '../ort-plugin/open-device.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';

export interface DeviceCompileOptions {
  /** Receives the number of compiled graphs before each graph; measuring the device counts as one more. */
  onStep?(done: number, total: number): void;
  signal?: AbortSignal;
}

/**
 * Compiles the static graphs of a model for a device, stores the device's own binaries beside them (EPContext), and
 * measures the speed and error of the device against the CPU. The manifest then names the binaries, what they depend
 * on, and the measurements. Throws `engine_failed` if the device cannot run a whole graph.
 */
export async function compileForDevice(
  folder: string,
  target: PluginTarget,
  { onStep, signal }: DeviceCompileOptions = {},
): Promise<Manifest> {
  const manifest = readManifest(folder);
  const graphs = manifest.static;
  if (!graphs) throw new AssayError('engine_failed', 'Only a model over fixed shapes is compiled for a device.');
  const files = [...graphs.bodies.map(({ graph }) => graph), graphs.head.graph];
  const device = await openDevice(target);
  const identity = identityOf(target, device.device);
  try {
    for (const [done, file] of files.entries()) {
      signal?.throwIfAborted();
      onStep?.(done, files.length + 1);
      const session = await device.session(join(folder, file), contextConfig(join(folder, contextFile(file))));
      session.release();
      // A plugin that writes no binary reports no error, but the model would then be compiled at each load: so the file
      // must exist.
      statSync(join(folder, contextFile(file)));
    }
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
  onStep?.(files.length, files.length + 1);
  const figures = await figuresOf(folder, manifest, graphs, compiled, target);
  const result: Manifest = { ...manifest, static: compiled, compiledFor: { identity, ...figures } };
  writeManifest(folder, result);
  for (const file of files) rmSync(join(folder, file));
  return result;
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
  manifest: Manifest,
  graphs: StaticGraphs,
  compiled: StaticGraphs,
  plugin: PluginTarget,
): Promise<DeviceFigures> {
  const lookup = { ...(await sessionOptions()), executionProviders: ['cpu'] };
  const cpu = await openStatic(folder, manifest, graphs, { lookup });
  const device = await openStatic(folder, manifest, compiled, { lookup, plugin }).catch(async (error: unknown) => {
    await cpu.close();
    throw error;
  });
  try {
    return await compareDevices(
      new StaticForward(device.sessions, manifest, compiled),
      new StaticForward(cpu.sessions, manifest, graphs),
      { kv: kvShape(manifest), contextLength: manifest.contextLength },
    );
  } finally {
    await device.close();
    await cpu.close();
  }
}
