export type {
  BatchAnswer,
  Call,
  ChatEvent,
  ChatRequest,
  InferenceBackend,
  ListedModel,
  Metrics,
  Task,
  TaskAnswer,
  TaskBatch,
} from '../lib/backend.ts';
export { type Clock, systemClock } from '../lib/clock.ts';
export type { AnswerShape } from '../lib/contract/answer-shape.ts';
export type { ChatMessage, Part } from '../lib/contract/conversation.ts';
export { AssayError, type ErrorCode } from '../lib/errors.ts';
export { type ApiKey, hashSecret, type KeyStore, listedKeys, type Quota, type StoredKey } from '../lib/keys.ts';
export { memoryQuota } from '../lib/limits/quota.ts';
export { type ModelId, parseModelId } from '../lib/model-id.ts';
export type { HostDownloadEvent, ModelHost, ModelView } from '../lib/models/host.ts';
export { createApp } from './app.ts';
export type { AppDeps, GuardSettings, RequestLog, RequestRecord } from './context.ts';
