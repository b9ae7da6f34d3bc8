import type { ErrorFormat } from '../error-status.ts';
import type { ComponentName } from './components.ts';

/** Describes one operation of the contract: path and method, request, responses. */
export interface Operation {
  api: ErrorFormat;
  method: 'get' | 'post' | 'delete';
  path: string;
  /** The operation id; generated clients name a function after it. */
  id: string;
  summary: string;
  description?: string;
  request?: ComponentName;
  response: ComponentName;
  /** The response that a gateway may send instead. */
  edge?: ComponentName;
  /** The schema of one event, if the operation can stream (with `Accept: text/event-stream` or `stream: true`). */
  events?: ComponentName;
  /**
   * The cases in which a caller needs an API key. `off loopback`: if the server listens on an address other than
   * loopback.
   */
  key: 'always' | 'off loopback' | 'never';
  /** Error statuses of this operation, in addition to those of every operation. */
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
    'Blocks until all is compiled, which can take many minutes. With Accept: text/event-stream the call reports its progress, ' +
    'and ends with a DownloadResponse or an ErrorBody. The download continues when its caller leaves; a second call joins it.',
} as const;
const deleting = {
  ...post,
  request: 'DeleteRequest',
  response: 'DeleteResponse',
  errors: [...BODY, 404, 409],
  description: 'Removes the compiled files, and without compiled_only the downloaded weights and lock files too.',
} as const;

/** Every operation of both interfaces. A new operation is a new row. */
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
    summary: 'The original name of /v1/tasks, kept so that older clients go on working',
    request: 'RunTasksRequest',
    response: 'RunTasksResponse',
  },
  {
    ...decisions,
    path: '/decide',
    id: 'decide',
    summary: 'Answer one question',
    request: 'DecideRequest',
    response: 'DecideResponse',
  },
  {
    ...decisions,
    path: '/extract',
    id: 'extract',
    summary: 'Extract one object',
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
      'Takes what the openai clients send to decisions.create, and the question type extract. A body with state in place of input is ' +
      'answered as by /v1/systemone.',
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
      'The same questions under names, about a text or JSON. A body with input in place of state is answered as by /v1/decisions.',
    request: 'SystemOneRequest',
    response: 'SystemOneResponse',
    errors: [400, 404, 413, 422, 429],
  },
  {
    ...get,
    path: '/',
    id: 'getServerStatus',
    summary: 'Whether the server runs',
    response: 'ServerStatus',
    key: 'never',
  },
  { ...health, path: '/health', id: 'getHealth', summary: 'The state of the model slot', key: 'never' },
  { ...health, path: '/currentmodel', id: 'getCurrentModel', summary: 'The same as /health' },
  { ...get, path: '/v1/models', id: 'listModels', summary: 'All known models', response: 'ModelList' },
  {
    ...get,
    path: '/models',
    id: 'listModelsShort',
    summary: 'The same as /v1/models',
    response: 'ModelList',
  },
  {
    ...get,
    path: '/v1/models/{model_id}',
    id: 'getModel',
    summary: 'One model of the list',
    response: 'Model',
    errors: [404],
  },
  {
    ...loading,
    path: '/v1/models/load',
    id: 'loadModel',
    summary: 'Compile a model where needed and make it the active one',
  },
  { ...loading, path: '/load', id: 'loadModelShort', summary: 'The same as /v1/models/load' },
  {
    ...post,
    path: '/unload',
    id: 'unloadModel',
    summary: 'Unload the active model',
    response: 'UnloadResponse',
    errors: [...BODY, 409],
  },
  { ...downloading, path: '/v1/models/download', id: 'downloadModel', summary: 'Download a model and compile it' },
  { ...downloading, path: '/download', id: 'downloadModelShort', summary: 'The same as /v1/models/download' },
  { ...deleting, path: '/v1/models/delete', id: 'deleteModel', summary: 'Delete the files of a model' },
  { ...deleting, path: '/delete', id: 'deleteModelShort', summary: 'The same as /v1/models/delete' },
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
      'With stream: true the answer is a stream of events: chunks with reasoning, content, and tool calls, one last chunk with ' +
      'finish_reason, usage and metrics, then the line data: [DONE]. An error after the first chunk is one event with an ErrorBody. ' +
      'tools needs a model whose chat template has them; another one refuses them with unsupported_parameter. ' +
      'Fields that are not listed are ignored, but for functions, logit_bias, audio and others that would change the ' +
      'meaning: those are refused with unsupported_parameter.',
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
      'tools are functions, for a model whose chat template has them. Nothing is stored: store must be false or absent, previous_response_id and conversation are refused, and the items of earlier ' +
      'answers are sent in input. With stream: true the answer is a stream of events; the last one has the whole response. An error ' +
      'after the first event is one event of type error.',
    request: 'ResponsesRequest',
    response: 'ResponsesAnswer',
    events: 'ResponsesEvent',
    errors: [...BODY, 404, 409],
  },
];
