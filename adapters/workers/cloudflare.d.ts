/** Declares the parts of the Workers runtime's module that this folder uses. Their types are in `bindings.ts`. */
declare module 'cloudflare:workers' {
  /** Declares the base class of Durable Objects. Workers call the public methods of a subclass through a stub. */
  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: import('./bindings.ts').DurableObjectState;
    protected readonly env: Env;
    constructor(ctx: import('./bindings.ts').DurableObjectState, env: Env);
  }

  /** Keeps the current request's Worker alive until `work` settles. */
  export function waitUntil(work: Promise<unknown>): void;
}
