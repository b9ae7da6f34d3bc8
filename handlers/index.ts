export { AssayError, type ErrorCode } from '../lib/errors.ts';
export { createApp } from './app.ts';
