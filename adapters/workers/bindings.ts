/*
 * The runtime's interfaces beyond web standards, as far as this folder uses them
 * (developers.cloudflare.com/workers/runtime-apis). They are plain types, so that a project that imports
 * `assay/workers` type-checks without Cloudflare's own types.
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

/** Represents a remote object: each of its methods returns a promise. */
export type Stub<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

export interface KVNamespace {
  get(key: string, options: { type: 'json'; cacheTtl?: number }): Promise<unknown>;
}
