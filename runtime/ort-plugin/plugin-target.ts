import * as v from 'valibot';

const Text = v.pipe(v.string(), v.minLength(1), v.maxLength(4096));

/** Names a plugin's device for another process. */
export const PluginTarget = v.object({
  /** Name of the plugin for people, with its version. */
  plugin: Text,
  /** Execution provider; the plugin is registered under this name. */
  provider: Text,
  /** Absolute path of the plugin's library. */
  library: Text,
  hardware: v.picklist(['CPU', 'GPU', 'NPU']),
  /** Options of the provider. */
  options: v.record(Text, Text),
});
export type PluginTarget = v.InferOutput<typeof PluginTarget>;
