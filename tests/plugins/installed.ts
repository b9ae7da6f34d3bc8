import { homedir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import type { PluginTarget } from '../../runtime/ort-plugin/plugin-target.ts';
import { PLATFORM, type PluginName, pluginNamed } from '../../runtime/plugins/catalogue.ts';
import { PluginStore } from '../../runtime/plugins/plugin-store.ts';

/** Kept between runs of the suite, so that wheels are fetched once for each machine. */
const HOME = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'assay-test-plugins');

/**
 * Returns a plugin of the catalogue, fetched if it is missing; null, with the reason on standard error, if it cannot
 * be: another platform, or a registry that is unreachable or does not have it.
 */
export async function testPlugin(name: PluginName): Promise<{ library: string; directory: string } | null> {
  const plugin = pluginNamed(name);
  const skip = (reason: string): null => {
    console.warn(`SKIPPED: tests with the ${name} plugin: ${reason}`);
    return null;
  };
  if (PLATFORM !== 'linux-x64') return skip(`they run on linux-x64, and this is ${PLATFORM}`);
  const store = new PluginStore(HOME);
  const found = await store.find(plugin);
  if (found && !found.damage) return found;
  try {
    return await store.install(plugin, {
      fetch: (url, init) => fetch(url, init),
      index: process.env.PIP_INDEX_URL,
      signal: AbortSignal.timeout(300_000),
      clock: systemClock,
      random: Math.random,
      onBytes: () => {},
    });
  } catch (error) {
    // Two test files may ask at the same time: the other one fetches it.
    if ((error as { code?: string }).code === 'operation_in_progress') {
      await systemClock.sleep(1000);
      return testPlugin(name);
    }
    return skip((error as Error).message);
  }
}

/** OpenVINO's CPU device, told to compute in 32 bits where the processor has 16. */
export async function openvinoCpu(): Promise<PluginTarget | null> {
  const found = await testPlugin('openvino');
  return (
    found && {
      plugin: 'openvino test',
      provider: 'OpenVINOExecutionProvider',
      registration: 'OpenVINOExecutionProvider',
      library: found.library,
      libraryPath: [],
      compiles: true,
      hardware: 'CPU',
      options: { load_config: JSON.stringify({ CPU: { INFERENCE_PRECISION_HINT: 'f32' } }) },
    }
  );
}

/**
 * The emulator of Qualcomm's NPU (HTP v73, as in Snapdragon X Elite), which computes in 16 bits. It finds no chip, so
 * the chip is named. Source: onnxruntime, QNN Execution Provider, "soc_model" and "htp_arch".
 */
export async function qnnEmulator(): Promise<PluginTarget | null> {
  const found = await testPlugin('qnn');
  return (
    found && {
      plugin: 'qnn test',
      provider: 'QNNExecutionProvider',
      registration: 'QNNExecutionProvider',
      library: found.library,
      libraryPath: [],
      compiles: true,
      hardware: 'CPU',
      options: { backend_path: join(found.directory, 'onnxruntime_qnn/libQnnHtp.so'), soc_model: '60', htp_arch: '73' },
    }
  );
}
