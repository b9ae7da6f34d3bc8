/**
 * Returns the environment for a child process: without variables whose names contain a word such as `token` or `key`,
 * because the child handles untrusted templates and model files, and without `NODE_OPTIONS`, because no debugger or
 * module may attach to the child.
 */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/token|key|secret|password|credential|^NODE_OPTIONS$/iu.test(name)),
  );
}
