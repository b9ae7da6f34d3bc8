export type { ErrorCode } from '../lib/errors.ts';
export { AssayError } from '../lib/errors.ts';
export { createApp } from './app.ts';
export type { AppDeps, GuardSettings, RequestLog, RequestRecord } from './context.ts';
