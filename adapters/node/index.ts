export { compose, type Parts } from './compose.ts';
export { ServerConfig, serverConfig } from './config.ts';
export { KeysStore } from './keys-file.ts';
export { createLog, requestLog } from './log.ts';
export { type Serving, serve } from './serve.ts';
export { type RunningServer, startServer } from './server.ts';
