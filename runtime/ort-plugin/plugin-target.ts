/** Identifies a plugin's device to another process. */
export interface PluginTarget {
  /** Name and version of the plugin, for error messages and for the identity of its device. */
  plugin: string;
  /** Name of the execution provider. */
  provider: string;
  /** Name under which the plugin is registered. */
  registration: string;
  /** Absolute path of the plugin's library. */
  library: string;
  /** Absolute paths of directories in which the process that opens the device must look for libraries first. */
  libraryPath: string[];
  hardware: 'CPU' | 'GPU' | 'NPU';
  /** True if the provider compiles a whole graph; false if it runs a graph operator by operator. */
  compiles: boolean;
  /** Options of the execution provider. */
  options: Record<string, string>;
}

/**
 * Returns the environment variables to add to `env` for a process that opens a plugin's device; none without a plugin
 * that needs them. They must be set when the process starts, because the loader reads them only then. Source: ld.so(8).
 */
export function environmentFor(plugin: PluginTarget | undefined, env: NodeJS.ProcessEnv): Record<string, string> {
  if (!plugin || plugin.libraryPath.length === 0) return {};
  const path = [...plugin.libraryPath, ...(env.LD_LIBRARY_PATH ? [env.LD_LIBRARY_PATH] : [])];
  return { LD_LIBRARY_PATH: path.join(':') };
}
