/**
 * Returns the environment without tokens and keys, because the child runs untrusted templates and model files, and
 * without flags for Node (`NODE_OPTIONS`), because no debugger or other module may attach to it.
 */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/token|key|secret|password|credential|^NODE_OPTIONS$/iu.test(name)),
  );
}
