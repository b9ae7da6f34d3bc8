/** Declares the module of the Workers runtime, as far as this folder uses it; its types are in `bindings.ts`. */
declare module 'cloudflare:workers' {
  /** Declares the base class of Durable Objects; public methods can be called through a stub. */
  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: import('./bindings.ts').DurableObjectState;
    protected readonly env: Env;
    constructor(ctx: import('./bindings.ts').DurableObjectState, env: Env);
  }

  /** Keeps the event alive until the work is done. Counts for the request during which it is called. */
  export function waitUntil(work: Promise<unknown>): void;
}
