/*
 * The interfaces of the Workers runtime that this folder uses, besides web standards. Source:
 * developers.cloudflare.com/workers/runtime-apis. They are declared here so that a project that imports
 * `assay/workers` type-checks without Cloudflare's types.
 */

export interface DurableObjectState {
  readonly storage: DurableObjectStorage;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}

export interface DurableObjectStorage {
  get<T>(key: string): Promise<T | undefined>;
  put<T>(key: string, value: T): Promise<void>;
  deleteAll(): Promise<void>;
  getAlarm(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
}

export interface DurableObjectNamespace<T> {
  getByName(name: string): Stub<T>;
}

/** Represents a Durable Object of class `T` as its callers see it: every method returns a promise. */
export type Stub<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

export interface KVNamespace {
  get(key: string, options: { type: 'json'; cacheTtl?: number }): Promise<unknown>;
}
