import type { ErrorFormat } from '../error-status.ts';
import type { ComponentName } from './components.ts';

/** Describes one operation of the contract: a method of a path. */
export interface Operation {
  api: ErrorFormat;
  method: 'get' | 'post' | 'delete';
  path: string;
  /** The OpenAPI `operationId`, after which generated clients name a function. */
  id: string;
  summary: string;
  description?: string;
  request?: ComponentName;
  response: ComponentName;
  /** Name of the schema of the response that an edge sends instead of `response`; absent if it is the same. */
  edge?: ComponentName;
  /**
   * Name of the schema of one event; present if the operation can stream (with `Accept: text/event-stream` or `stream:
   * true`).
   */
  events?: ComponentName;
  /**
   * Tells when a caller needs an API key. `off loopback`: only if the server listens on an address other than loopback.
   */
  key: 'always' | 'off loopback' | 'never';
  /** HTTP statuses of the operation's errors, besides 403 and 500, which every operation has, and 401. */
  errors: readonly number[];
}

const decisions = { api: 'decisions', method: 'post', key: 'always', errors: [400, 422, 429] } as const;
const questions = { method: 'post', key: 'always' } as const;
const get = { api: 'models', method: 'get', key: 'off loopback', errors: [] } as const;
const post = { api: 'models', method: 'post', key: 'off loopback' } as const;

const health = { ...get, response: 'Health', edge: 'EdgeHealth' } as const;
const BODY = [400, 413, 415, 429] as const;
const loading = {
  ...post,
  request: 'LoadRequest',
  response: 'LoadResponse',
  errors: [...BODY, 404, 409, 507],
} as const;
const downloading = {
  ...post,
  request: 'DownloadRequest',
  response: 'DownloadResponse',
  events: 'DownloadEvent',
  errors: [...BODY, 404, 409, 502, 507],
  description:
    'Responds when the model is downloaded and compiled, which can take many minutes. With Accept: text/event-stream the ' +
    'response is a stream of progress events that ends with a DownloadResponse or an ErrorBody. The download continues if the ' +
    'caller disconnects, unless it is still fetching the list of files; a second call joins it.',
} as const;
const deleting = {
  ...post,
  request: 'DeleteRequest',
  response: 'DeleteResponse',
  errors: [...BODY, 404, 409],
  description: 'Deletes the compiled files and, unless compiled_only is true, the downloaded weights and lock files.',
} as const;

/** All operations of both APIs. */
export const OPERATIONS: readonly Operation[] = [
  {
    ...decisions,
    path: '/v1/tasks',
    id: 'runTasks',
    summary: 'Answer a list of tasks about one shared context',
    request: 'RunTasksRequest',
    response: 'RunTasksResponse',
  },
  {
    ...decisions,
    path: '/v1/decide-extract',
    id: 'decideExtract',
    summary: 'Alias of /v1/tasks, for older clients',
    request: 'RunTasksRequest',
    response: 'RunTasksResponse',
  },
  {
    ...decisions,
    path: '/decide',
    id: 'decide',
    summary: 'Answer one decide task',
    request: 'DecideRequest',
    response: 'DecideResponse',
  },
  {
    ...decisions,
    path: '/extract',
    id: 'extract',
    summary: 'Answer one extract task',
    request: 'ExtractRequest',
    response: 'ExtractResponse',
  },
  {
    ...questions,
    api: 'openai',
    path: '/v1/decisions',
    id: 'createDecision',
    summary: "Answer questions with probabilities, in the format of OpenAI's Decisions API",
    description:
      'Accepts the requests that decisions.create of the OpenAI SDKs sends, and in addition questions of type extract. A body ' +
      'with state instead of input is handled as by /v1/systemone.',
    request: 'DecisionsRequest',
    response: 'DecisionsResponse',
    errors: [400, 404, 409, 413, 415, 429],
  },
  {
    ...questions,
    api: 'systemone',
    path: '/v1/systemone',
    id: 'askSystemOne',
    summary: 'Answer questions with probabilities, in the format of System One',
    description:
      'Answers named questions about a text or a JSON value. A body with input instead of state is handled as by /v1/decisions.',
    request: 'SystemOneRequest',
    response: 'SystemOneResponse',
    errors: [400, 404, 413, 422, 429],
  },
  {
    ...get,
    path: '/',
    id: 'getServerStatus',
    summary: 'Get the status of the server',
    response: 'ServerStatus',
    key: 'never',
  },
  { ...health, path: '/health', id: 'getHealth', summary: 'Get the state of the loaded model', key: 'never' },
  { ...health, path: '/currentmodel', id: 'getCurrentModel', summary: 'Alias of /health' },
  { ...get, path: '/v1/models', id: 'listModels', summary: 'List the models on this machine', response: 'ModelList' },
  {
    ...get,
    path: '/models',
    id: 'listModelsShort',
    summary: 'Alias of /v1/models',
    response: 'ModelList',
  },
  {
    ...get,
    path: '/v1/models/{model_id}',
    id: 'getModel',
    summary: 'Get one model',
    response: 'Model',
    errors: [404],
  },
  {
    ...loading,
    path: '/v1/models/load',
    id: 'loadModel',
    summary: 'Load a model, and compile it first if needed',
  },
  { ...loading, path: '/load', id: 'loadModelShort', summary: 'Alias of /v1/models/load' },
  {
    ...post,
    path: '/unload',
    id: 'unloadModel',
    summary: 'Unload the active model',
    response: 'UnloadResponse',
    errors: [...BODY, 409],
  },
  { ...downloading, path: '/v1/models/download', id: 'downloadModel', summary: 'Download a model and compile it' },
  { ...downloading, path: '/download', id: 'downloadModelShort', summary: 'Alias of /v1/models/download' },
  { ...deleting, path: '/v1/models/delete', id: 'deleteModel', summary: 'Delete the files of a model' },
  { ...deleting, path: '/delete', id: 'deleteModelShort', summary: 'Alias of /v1/models/delete' },
  {
    ...get,
    method: 'delete',
    path: '/v1/models/{model_id}',
    id: 'deleteModelById',
    summary: 'Delete all files of a model',
    response: 'DeleteResponse',
    errors: [...BODY, 404, 409],
  },
  {
    ...post,
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    summary: 'Complete a chat, at once or as a stream',
    description:
      'With stream: true the response is a stream of events: chunks with reasoning, content and tool calls, a last chunk with ' +
      'finish_reason, usage and metrics, then data: [DONE]. An error after the first chunk is an event with an ErrorBody. ' +
      'tools need a model whose chat template supports them; other models refuse them with unsupported_parameter. Unlisted ' +
      'fields are ignored, except those that would change the meaning of the request, such as functions, logit_bias and ' +
      'audio: these are refused with unsupported_parameter.',
    request: 'ChatCompletionRequest',
    response: 'ChatCompletion',
    events: 'ChatCompletionChunk',
    errors: [...BODY, 404, 409],
  },
  {
    ...post,
    path: '/v1/responses',
    id: 'createResponse',
    summary: "Complete a chat, in the format of OpenAI's Responses API",
    description:
      'tools may be functions, if the chat template of the model supports them. Nothing is stored: store must be false or ' +
      'absent, previous_response_id and conversation are refused, and input carries the items of earlier responses. With ' +
      'stream: true the response is a stream of events, and the last one has the whole response. An error after the first ' +
      'event is an event of type error.',
    request: 'ResponsesRequest',
    response: 'ResponsesAnswer',
    events: 'ResponsesEvent',
    errors: [...BODY, 404, 409],
  },
];
