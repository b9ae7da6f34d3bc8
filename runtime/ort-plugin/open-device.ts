import { at } from '../../lib/at.ts';
import { AssayError, messageOf } from '../../lib/errors.ts';
import { type EpDevice, OrtEnvironment } from './environment.ts';
import { PluginSession, type PluginSessionOptions } from './plugin-session.ts';
import type { PluginTarget } from './plugin-target.ts';

/** Represents a plugin's device, with the plugin registered in this process. */
export interface OpenDevice {
  device: EpDevice;
  /**
   * Loads a model on the device. Throws `OrtError` if onnxruntime cannot load or compile it, and `engine_failed` if the
   * device does not run the whole model, or compiles it into several parts.
   *
   * @param file path of the ONNX file
   * @param config entries to add to the session configuration (onnxruntime_session_options_config_keys.h)
   */
  session(file: string, config?: Readonly<Record<string, string>>): Promise<PluginSession>;
  /**
   * Closes the device, whose sessions must have been released. The last device of a plugin to close unregisters the
   * plugin.
   */
  close(): void;
}

/**
 * Session configuration that forbids running part of a model on the CPU, which would be slower than the CPU alone, and
 * that records which provider runs which part. Source: onnxruntime_session_options_config_keys.h.
 */
const STRICT = { 'session.disable_cpu_ep_fallback': '1', 'session.record_ep_graph_assignment_info': '1' };

/** Number of open devices of each plugin in this process. The last one to close unregisters the plugin. */
const registered = new Map<string, number>();

/**
 * Registers a plugin, unless this process has registered it already, and finds its device. Throws `engine_failed` if
 * the plugin's library does not load, or if this machine does not have the device; `OrtError` if onnxruntime's C API
 * cannot be used.
 */
export async function openDevice(target: PluginTarget): Promise<OpenDevice> {
  const env = await OrtEnvironment.open();
  const { registration, library, options } = target;
  const close = (): void => {
    const left = (registered.get(registration) ?? 1) - 1;
    if (left > 0) registered.set(registration, left);
    else {
      registered.delete(registration);
      env.unregister(registration);
    }
    env.release();
  };
  try {
    if (!registered.has(registration)) env.register(registration, library);
  } catch (cause) {
    env.release();
    throw new AssayError(
      'engine_failed',
      `The plugin ${target.plugin} does not load on this machine: ${loadFailureReason(cause)}. Install what is missing (docs/devices.md), or use another device (--device).`,
      { cause },
    );
  }
  registered.set(registration, (registered.get(registration) ?? 0) + 1);
  let device: EpDevice;
  try {
    device = findDevice(env, target);
  } catch (cause) {
    close();
    throw cause;
  }
  return {
    device,
    async session(file, config = {}) {
      const chosen: PluginSessionOptions = { device, providerOptions: options, config: { ...STRICT, ...config } };
      const session = await PluginSession.create(env, file, chosen);
      try {
        checkParts(session, target);
        return session;
      } catch (cause) {
        session.release();
        throw cause;
      }
    },
    close,
  };
}

/** Finds the device of a registered plugin. Throws `engine_failed` if this machine does not have it. */
function findDevice(env: OrtEnvironment, { plugin, library, hardware }: PluginTarget): EpDevice {
  const device = env.devices().find(({ metadata, ...one }) => {
    return metadata.library_path === library && one.hardware === hardware;
  });
  if (device) return device;
  throw new AssayError(
    'engine_failed',
    `The plugin ${plugin} finds no ${hardware} on this machine. Install the vendor's driver, or list the devices: assay doctor`,
  );
}

/**
 * Throws `engine_failed` unless the plugin runs the whole model of a session, and as a single part if it compiles
 * graphs. A provider with kernels has one part for each operator; onnxruntime does not record those of WebGPU, but
 * `STRICT` keeps operators off the CPU there, too.
 */
function checkParts(session: PluginSession, { provider, hardware, compiles }: PluginTarget): void {
  const parts = session.assignments();
  const whole = parts.every((part) => part.provider === provider);
  if (whole && (!compiles || (parts.length === 1 && at(parts, 0).subgraphs === 1))) return;
  const found = parts.map((part) => `${part.subgraphs} on ${part.provider}`).join(', ');
  throw new AssayError(
    'engine_failed',
    `The ${hardware} does not run this model as a single part (${found}), and each further part copies data back and forth. Choose another device with --device.`,
  );
}

/**
 * Returns a text of at most 1,000 characters that names everything a compiled binary depends on: the plugin, the chip
 * and its driver, and the provider's options other than paths.
 */
export function identityOf(target: PluginTarget, { vendor, vendorId, deviceId, metadata }: EpDevice): string {
  const facts = Object.entries(metadata)
    .filter(([key]) =>
      /^(version|full_device_name|device_architecture|.*driver.*version.*|.*compiler_version|npu_platform|.*soc.*)$/i.test(
        key,
      ),
    )
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`);
  const settings = Object.entries(target.options).filter(([key]) => !key.endsWith('path'));
  const id = `${vendor} ${vendorId.toString(16)}:${deviceId.toString(16)}`;
  return [target.plugin, target.hardware, id, ...facts, ...settings.map(([key, value]) => `${key}=${value}`)]
    .join('; ')
    .slice(0, 1000);
}

/** Maximum number of characters of onnxruntime's message to show. */
const MAX_CHARACTERS = 300;

/**
 * Returns onnxruntime's reason why a library, a device or a graph did not load, for a sentence: the end of the first
 * line, with the names of files instead of their paths, and without the final period.
 */
export function loadFailureReason(cause: unknown): string {
  const [line = ''] = messageOf(cause).split('\n');
  return line
    .replace(/^.* (?:with error:|was false\.) /, '')
    .replace(/(?<=^|[\s('"])(?:[A-Za-z]:)?[\\/](?:[^\s'":]*[\\/])*/g, '')
    .slice(0, MAX_CHARACTERS)
    .replace(/[.\s]+$/, '');
}
