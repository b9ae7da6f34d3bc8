import * as v from 'valibot';

const Text = v.pipe(v.string(), v.minLength(1), v.maxLength(4096));

/** A device behind a plugin, as a process is told of it. */
export const PluginTarget = v.object({
  /** What a person calls the plugin, with its version. */
  plugin: Text,
  /** Execution provider; the plugin is registered under this name. */
  provider: Text,
  /** The plugin's library. Absolute. */
  library: Text,
  hardware: v.picklist(['CPU', 'GPU', 'NPU']),
  /** Options of the provider. */
  options: v.record(Text, Text),
});
export type PluginTarget = v.InferOutput<typeof PluginTarget>;
