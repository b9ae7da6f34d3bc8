import * as v from 'valibot';

const Text = v.pipe(v.string(), v.minLength(1), v.maxLength(4096));

/** Identifies a plugin's device to another process. */
export const PluginTarget = v.object({
  /** Name and version of the plugin, for error messages and for the identity of its device. */
  plugin: Text,
  /** Name of the execution provider, under which the plugin is registered. */
  provider: Text,
  /** Absolute path of the plugin's library. */
  library: Text,
  hardware: v.picklist(['CPU', 'GPU', 'NPU']),
  /** Options of the execution provider. */
  options: v.record(Text, Text),
});
export type PluginTarget = v.InferOutput<typeof PluginTarget>;
