import type * as v from 'valibot';
import { chatRequest } from '../lib/chat/request.ts';
import { ChatRequest } from '../lib/contract/chat.ts';
import { CHAT_PATH, checkedChat, INTERNAL_LIMITS, TASKS_PATH } from '../lib/contract/internal.ts';
import type { BodyLimits } from '../lib/json/body.ts';
import { type JsonValue, parseJson } from '../lib/json/parse.ts';
import { openApiDocument } from '../lib/openapi/document.ts';
import type { Operation } from '../lib/openapi/operation.ts';
import { responsesRequest } from '../lib/responses/request.ts';
import { Batch, BatchList, CreateBatchRequest, FileDeleted, FileList, FileObject } from '../lib/schema/batches.ts';
import { ChatCompletion, ChatCompletionChunk, Completion } from '../lib/schema/chat-completion.ts';
import { ChatCompletionRequest, CompletionRequest } from '../lib/schema/chat-request.ts';
import { DecisionsResponse } from '../lib/schema/decisions-response.ts';
import { ExtractionsResponse, RunResponse } from '../lib/schema/extractions-response.ts';
import { GoogleDecisionsResponse } from '../lib/schema/google-decisions.ts';
import { Model, ModelList } from '../lib/schema/model-list.ts';
import {
  DeleteRequest,
  DeleteResponse,
  DownloadEvent,
  DownloadRequest,
  DownloadResponse,
  LoadRequest,
  LoadResponse,
  UnloadResponse,
} from '../lib/schema/model-operations.ts';
import { RerankResponse, TeiRanks } from '../lib/schema/rerank.ts';
import { ResponsesRequest } from '../lib/schema/responses-request.ts';
import { ResponsesAnswer, ResponsesEvent } from '../lib/schema/responses-response.ts';
import {
  EdgeHealth,
  Health,
  InferenceModel,
  InferenceServer,
  Liveness,
  ModelReadiness,
  Readiness,
  ServerStatus,
} from '../lib/schema/status.ts';
import { SystemOneBatchLine, SystemOneBatchRequest, SystemOneBatchResponse } from '../lib/schema/systemone-batch.ts';
import { SystemOneResponse } from '../lib/schema/systemone-response.ts';
import { DecideResponse, ExtractResponse, RunTasksResponse } from '../lib/schema/task-response.ts';
import { validate } from '../lib/validation/validate.ts';
import { answering } from './answer.ts';
import {
  cancelBatch,
  createBatch,
  deleteFile,
  fileContent,
  listBatches,
  listFiles,
  retrieveBatch,
  retrieveFile,
  uploadFile,
} from './batches.ts';
import { readRequest } from './body.ts';
import { chatCompletions, completions, internalChat } from './chat.ts';
import type { AppContext, AppHandler, Services } from './context.ts';
import { download } from './download.ts';
import {
  DECISION,
  EXTRACTION,
  EXTRACTIONS,
  GOOGLE_DECISIONS,
  INTERNAL_TASKS,
  OPENAI_DECISIONS,
  OPENROUTER,
  RERANK,
  RUN,
  SYSTEM_ONE,
  TASKS,
  TEI_RERANK,
} from './formats.ts';
import { deleteModel, deleteModelByPath, load, unload } from './model-operations.ts';
import { listModels, retrieveModel } from './models.ts';
import { responses } from './responses.ts';
import {
  browsersToPlayground,
  health,
  inferenceModel,
  inferenceServer,
  live,
  modelReady,
  ready,
  serverStatus,
} from './status.ts';
import { readStates, systemOneBatch } from './systemone-batch.ts';

/** Represents an operation of the contract with the handler that answers it. */
export interface Route extends Operation {
  /** True if a caller that needs a key also needs its scope `admin`. */
  admin?: true;
  /** True if requests count against the quota of the caller's key. */
  counts?: true;
  /**
   * Validates a body and compiles its schemas, as the handler does, without any effect (`BodyChecker`); absent if
   * bodies have no schemas.
   */
  read?(json: JsonValue): unknown;
  /** Creates the handler; undefined if the app lacks what it needs, such as a `ModelHost`: there is no route then. */
  handler(services: Services): AppHandler | undefined;
}

/** Holds the part of a route that the app needs. */
export type MountedRoute = Pick<
  Route,
  'api' | 'method' | 'path' | 'key' | 'admin' | 'own' | 'counts' | 'read' | 'handler'
>;

/**
 * Returns the members of a route whose handler gets the body of the request, checked against a schema. The content type
 * must be JSON.
 */
function reading<TSchema extends v.GenericSchema>(
  request: TSchema,
  handlerOf: (
    services: Services,
  ) => ((c: AppContext, sent: v.InferOutput<TSchema>) => Promise<Response> | Response) | undefined,
  limits?: BodyLimits,
): Pick<Route, 'request' | 'handler'> {
  return {
    request,
    handler(services) {
      const handle = handlerOf(services);
      return handle && (async (c) => handle(c, await readRequest(c, request, limits)));
    },
  };
}

/** Returns the routes of further paths of an operation, whose ids are made of its id and their path. */
function aliases<T extends object>(operation: T, id: string, of: string, paths: readonly string[]) {
  return paths.map((path) => ({
    ...operation,
    path,
    id: id + path.replaceAll(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary: `Alias of ${of}`,
  }));
}

const asking = { method: 'POST', key: 'always', counts: true, errors: [400, 404, 409, 413, 415, 429] } as const;
const decisions = { ...asking, errors: [400, 422, 429] } as const;
const extracting = {
  ...asking,
  ...answering(EXTRACTIONS),
  part: 'extractions',
  response: ExtractionsResponse,
} as const;
const ranking = {
  ...asking,
  ...answering(RERANK, TEI_RERANK),
  response: RerankResponse,
  or: TeiRanks,
} as const;
const get = { api: 'models', method: 'GET', key: 'off loopback', errors: [] } as const;
const post = { api: 'models', method: 'POST', key: 'off loopback' } as const;
const status = {
  ...get,
  response: Health,
  or: EdgeHealth,
  handler: ({ host }: Services) => host && health(host),
} as const;
const probe = { ...get, key: 'never' } as const;
const liveness = { ...probe, response: Liveness, handler: ({ host }: Services) => host && live } as const;
const unavailable = 'Not ready: no model answers, or the server is stopping.';
const readiness = { ...probe, response: Readiness, unavailable, handler: ready } as const;
const listing = { ...get, response: ModelList, handler: listModels } as const;
const own = { ...get, own: true } as const;
const filing = { api: 'openai', part: 'bulk', method: 'GET', key: 'always' } as const;
const BODY = [400, 413, 415, 429] as const;
const loading = {
  ...post,
  ...reading(LoadRequest, ({ host }) => host && load(host)),
  admin: true,
  response: LoadResponse,
  errors: [...BODY, 404, 409, 507],
} as const;
const downloading = {
  ...post,
  ...reading(DownloadRequest, (services) => services.host && download(services.host, services)),
  admin: true,
  response: DownloadResponse,
  events: DownloadEvent,
  errors: [...BODY, 404, 409, 502, 507],
  description:
    'Responds when the model is downloaded and compiled, which can take many minutes. With Accept: text/event-stream the ' +
    'response is a stream of progress events that ends with a DownloadResponse or an ErrorBody. The download continues if the ' +
    'caller disconnects, unless it is still fetching the list of files; a second call joins it.',
} as const;
const deleting = {
  ...post,
  ...reading(DeleteRequest, ({ host }) => host && deleteModel(host)),
  admin: true,
  response: DeleteResponse,
  errors: [...BODY, 404, 409],
  description: 'Deletes the compiled files and, unless compiled_only is true, the downloaded weights and lock files.',
} as const;

/**
 * All routes of both APIs: `createApp` mounts them, the contract documents them, and spans have their paths as names.
 * The document lists them in this order.
 */
export const ROUTES: readonly Route[] = [
  {
    ...decisions,
    path: '/v1/tasks',
    id: 'runTasks',
    summary: 'Answer a list of tasks about one shared context',
    ...answering(TASKS),
    response: RunTasksResponse,
  },
  {
    ...decisions,
    path: '/v1/decide-extract',
    id: 'decideExtract',
    summary: 'Alias of /v1/tasks, for older clients',
    ...answering(TASKS),
    response: RunTasksResponse,
  },
  {
    ...decisions,
    path: '/decide',
    id: 'decide',
    summary: 'Answer one decide task',
    ...answering(DECISION),
    response: DecideResponse,
  },
  {
    ...decisions,
    path: '/extract',
    id: 'extract',
    summary: 'Answer one extract task',
    ...answering(EXTRACTION),
    response: ExtractResponse,
  },
  {
    ...asking,
    path: '/v1/decisions',
    id: 'createDecision',
    summary: "Answer questions with probabilities, in the format of OpenAI's Decisions API",
    description:
      'Accepts the requests that decisions.create of the OpenAI SDKs sends, and in addition questions of type extract. A body ' +
      'with state instead of input is handled as by /v1/systemone, and one with questions by name as by /v1beta/decisions.',
    ...answering(OPENAI_DECISIONS, SYSTEM_ONE, GOOGLE_DECISIONS),
    response: DecisionsResponse,
  },
  {
    ...asking,
    path: '/v1/systemone',
    id: 'askSystemOne',
    summary: 'Answer questions with probabilities, in the format of System One',
    description:
      'Answers named questions about a text or a JSON value. A body with input instead of state is handled as by /v1/decisions.',
    ...answering(SYSTEM_ONE, OPENAI_DECISIONS, GOOGLE_DECISIONS),
    response: SystemOneResponse,
    errors: [404, 413, 415, 422, 429],
  },
  {
    ...asking,
    api: 'systemone',
    part: 'bulk',
    path: '/v1/systemone/batch',
    id: 'askSystemOneBatch',
    summary: 'Ask the same questions about many states',
    description:
      'Each state is answered as by /v1/systemone, and gets an error in its place if it cannot be. With Accept: ' +
      'application/x-ndjson, each answer is a line, sent once all before it were; the last line has total_usage.',
    request: SystemOneBatchRequest,
    response: SystemOneBatchResponse,
    lines: SystemOneBatchLine,
    errors: [404, 413, 415, 422, 429],
    read: readStates,
    handler: systemOneBatch,
  },
  {
    ...asking,
    path: '/v1beta/decisions',
    id: 'createGoogleDecision',
    summary: "Answer questions with probabilities, in the format of Google's Decisions",
    description:
      'Accepts the requests that decisions.create of the google-genai clients sends. The key may be in the header x-goog-api-key.',
    ...answering(GOOGLE_DECISIONS, OPENAI_DECISIONS, SYSTEM_ONE),
    response: GoogleDecisionsResponse,
  },
  ...['/api/alpha/decisions', '/api/alpha/systemone'].map((path, i) => ({
    ...asking,
    path,
    id: ['createAlphaDecision', 'askAlphaSystemOne'][i] ?? '',
    summary: "Alias of /v1/systemone for OpenRouter's clients, with their errors",
    ...answering(OPENROUTER, OPENAI_DECISIONS, GOOGLE_DECISIONS),
    response: SystemOneResponse,
  })),
  {
    ...extracting,
    path: '/v1/extractions',
    id: 'createExtraction',
    summary: 'Extract typed fields from a text, with probabilities and spans',
    description:
      'Texts are quoted from the state, so each has a span. questions of the System One format may be asked beside the ' +
      'fields; both are answered from one reading of the state.',
  },
  ...aliases(extracting, 'createExtraction', '/v1/extractions', [
    '/v1/extraction',
    '/extraction',
    '/alpha/extractions',
    '/api/alpha/extractions',
  ]),
  ...['/ai/run/@cf/{model}', '/client/v4/accounts/{account}/ai/run/@cf/{model}'].map((path, i) => ({
    ...asking,
    path,
    id: ['run', 'runOfAccount'][i] ?? '',
    summary: 'Extract typed fields, or answer questions, in the format of Workers AI',
    description: 'As /v1/extractions, in an envelope. The path names the model: cloudflare/clairic is the loaded one.',
    ...answering(RUN),
    response: RunResponse,
    errors: [400, 404, 409, 413, 422, 429],
  })),
  {
    ...ranking,
    path: '/v1/rerank',
    id: 'rerank',
    summary: 'Rank documents by the probability that each is relevant to a query',
    description:
      'Accepts the requests of the clients of Cohere, Jina, vLLM and llama.cpp. A body with texts instead of documents is ' +
      'handled as by Text Embeddings Inference: the answer is a list of objects with index, score and, with return_text, text. raw_scores asks for logits.',
  },
  ...aliases(ranking, 'rerank', '/v1/rerank', ['/rerank', '/v2/rerank', '/reranking', '/v1/reranking']),
  {
    ...get,
    path: '/',
    id: 'getServerStatus',
    summary: 'Get the status of the server',
    response: ServerStatus,
    key: 'never',
    handler: ({ host, pages }) =>
      host && (pages?.has('/playground') ? browsersToPlayground(serverStatus(host)) : serverStatus(host)),
  },
  { ...status, path: '/health', id: 'getHealth', summary: 'Get the state of the loaded model', key: 'never' },
  { ...status, path: '/currentmodel', id: 'getCurrentModel', summary: 'Alias of /health' },
  { ...liveness, path: '/health/live', id: 'isLive', summary: 'Answer as long as the server runs' },
  {
    ...readiness,
    path: '/health/ready',
    id: 'isReady',
    summary: 'Tell whether a model answers: with 200, or with 503',
  },
  {
    ...liveness,
    path: '/v2/health/live',
    id: 'isLiveV2',
    summary: 'Alias of /health/live, of the Open Inference Protocol',
  },
  {
    ...readiness,
    path: '/v2/health/ready',
    id: 'isReadyV2',
    summary: 'Alias of /health/ready, of the Open Inference Protocol',
  },
  {
    ...probe,
    path: '/v2',
    id: 'getInferenceServer',
    summary: "Get the server's name and version, in the format of the Open Inference Protocol",
    response: InferenceServer,
    handler: ({ host }) => host && inferenceServer,
  },
  {
    ...probe,
    path: '/v2/models/{model_id}/ready',
    id: 'isModelReady',
    summary: 'Tell whether this model answers: with 200, or with 503',
    response: ModelReadiness,
    unavailable,
    errors: [404],
    handler: modelReady,
  },
  {
    ...probe,
    path: '/v2/models/{model_id}',
    id: 'getInferenceModel',
    summary: 'Get the loaded model, in the format of the Open Inference Protocol',
    response: InferenceModel,
    errors: [404],
    handler: inferenceModel,
  },
  { ...listing, path: '/v1/models', id: 'listModels', summary: 'List the models on this machine' },
  { ...listing, path: '/models', id: 'listModelsShort', summary: 'Alias of /v1/models' },
  {
    ...get,
    path: '/v1/models/{model_id}',
    id: 'getModel',
    summary: 'Get one model',
    response: Model,
    errors: [404],
    handler: retrieveModel,
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
    response: UnloadResponse,
    errors: [...BODY, 409],
    admin: true,
    handler: ({ host }) => host && unload(host),
  },
  { ...downloading, path: '/v1/models/download', id: 'downloadModel', summary: 'Download a model and compile it' },
  { ...downloading, path: '/download', id: 'downloadModelShort', summary: 'Alias of /v1/models/download' },
  { ...deleting, path: '/v1/models/delete', id: 'deleteModel', summary: 'Delete the files of a model' },
  { ...deleting, path: '/delete', id: 'deleteModelShort', summary: 'Alias of /v1/models/delete' },
  {
    ...get,
    method: 'DELETE',
    path: '/v1/models/{model_id}',
    id: 'deleteModelById',
    summary: 'Delete all files of a model',
    response: DeleteResponse,
    errors: [...BODY, 404, 409],
    admin: true,
    handler: ({ host }) => host && deleteModelByPath(host),
  },
  {
    ...post,
    counts: true,
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    summary: 'Complete a chat, at once or as a stream',
    description:
      'With stream: true the response is a stream of events: chunks with reasoning, content and tool calls, a last chunk with ' +
      'finish_reason, usage and metrics, then data: [DONE]. An error after the first chunk is an event with an ErrorBody. ' +
      'tools need a model whose chat template supports them; other models refuse them with unsupported_parameter. Unlisted ' +
      'fields are ignored, except those that would change the meaning of the request, such as functions, logit_bias and ' +
      'audio: these are refused with unsupported_parameter.',
    ...reading(ChatCompletionRequest, chatCompletions),
    read: (json) => chatRequest(validate(ChatCompletionRequest, json)),
    response: ChatCompletion,
    events: ChatCompletionChunk,
    errors: [...BODY, 404, 409],
  },
  {
    ...post,
    counts: true,
    path: '/v1/completions',
    id: 'createCompletion',
    summary: 'Complete a text, in the older format of OpenAI, at once or as a stream',
    description: 'The prompt is sent as one message of a user, so the same as a chat of one message is answered.',
    ...reading(CompletionRequest, completions),
    response: Completion,
    events: Completion,
    errors: [...BODY, 404, 409],
  },
  {
    ...post,
    counts: true,
    path: '/v1/responses',
    id: 'createResponse',
    summary: "Complete a chat, in the format of OpenAI's Responses API",
    description:
      'tools may be functions, if the chat template of the model supports them. Nothing is stored: store must be false or ' +
      'absent, previous_response_id and conversation are refused, and input carries the items of earlier responses. With ' +
      'stream: true the response is a stream of events, and the last one has the whole response. An error after the first ' +
      'event is an event of type error.',
    ...reading(ResponsesRequest, responses),
    read: (json) => responsesRequest(validate(ResponsesRequest, json)),
    response: ResponsesAnswer,
    events: ResponsesEvent,
    errors: [...BODY, 404, 409],
  },
  {
    ...filing,
    method: 'POST',
    path: '/v1/files',
    id: 'uploadFile',
    summary: 'Upload a file of requests for a batch',
    description:
      'The body is multipart/form-data with purpose (batch), file (JSON lines, at most 200 MB) and, optionally, ' +
      'expires_after[anchor] (created_at) and expires_after[seconds]. A server has files and batches with --batches only.',
    response: FileObject,
    errors: [400, 413, 415, 429, 507],
    handler: uploadFile,
  },
  {
    ...filing,
    path: '/v1/files',
    id: 'listFiles',
    summary: 'List the files of this key: ?purpose, after, limit, order',
    response: FileList,
    errors: [400],
    handler: listFiles,
  },
  {
    ...filing,
    path: '/v1/files/{id}/content',
    id: 'getFileContent',
    summary: 'Get the content of a file',
    response: 'application/octet-stream',
    errors: [404],
    handler: fileContent,
  },
  {
    ...filing,
    path: '/v1/files/{id}',
    id: 'getFile',
    summary: 'Get a file',
    response: FileObject,
    errors: [404],
    handler: retrieveFile,
  },
  {
    ...filing,
    method: 'DELETE',
    path: '/v1/files/{id}',
    id: 'deleteFile',
    summary: 'Delete a file',
    response: FileDeleted,
    errors: [404, 409],
    handler: deleteFile,
  },
  {
    ...filing,
    method: 'POST',
    path: '/v1/batches',
    id: 'createBatch',
    summary: 'Answer a file of requests in the background',
    description: 'With the header Idempotency-Key, the same request again returns the same batch.',
    request: CreateBatchRequest,
    response: Batch,
    errors: [...BODY, 404, 409],
    handler: createBatch,
  },
  {
    ...filing,
    path: '/v1/batches',
    id: 'listBatches',
    summary: 'List the batches of this key: ?after, limit',
    response: BatchList,
    errors: [400],
    handler: listBatches,
  },
  {
    ...filing,
    method: 'POST',
    path: '/v1/batches/{id}/cancel',
    id: 'cancelBatch',
    summary: 'Cancel a batch; what was answered stays',
    response: Batch,
    errors: [404, 409],
    handler: cancelBatch,
  },
  {
    ...filing,
    path: '/v1/batches/{id}',
    id: 'getBatch',
    summary: 'Get a batch',
    response: Batch,
    errors: [404],
    handler: retrieveBatch,
  },
  {
    ...own,
    path: '/openapi.json',
    id: 'getContract',
    summary: 'This document',
    response: 'application/json',
    key: 'never',
    handler: () => contract(),
  },
  {
    ...own,
    path: '/metrics',
    id: 'getMetrics',
    summary: "Metrics of the server and its engine, in Prometheus' text format",
    response: 'text/plain',
    admin: true,
    handler: ({ metrics, bodies }) =>
      metrics && ((c) => metrics({ bodyBytes: bodies.used, accept: c.req.header('accept') })),
  },
];

/** The routes by which an edge sends a box of the same version its requests (internal.ts). No document lists them. */
export const INTERNAL_ROUTES: readonly MountedRoute[] = [
  { ...asking, path: TASKS_PATH, ...answering(INTERNAL_TASKS) },
  {
    ...asking,
    path: CHAT_PATH,
    api: 'models',
    ...reading(ChatRequest, internalChat, INTERNAL_LIMITS),
    read: (json) => checkedChat(validate(ChatRequest, json)),
  },
];

/**
 * Validates the JSON text of a body for the route with this path, and compiles its schemas: what a `BodyChecker` does.
 *
 * @throws AssayError what the route's handler would throw for the body
 */
export function readBodyOf(path: string, text: string): void {
  const route = [...ROUTES, ...INTERNAL_ROUTES].find((one) => one.path === path && one.method === 'POST');
  route?.read?.(parseJson(new TextEncoder().encode(text), INTERNAL_LIMITS.maxParts));
}

/** Handles `GET /openapi.json`: returns the OpenAPI contract of both APIs, which is built at the first request. */
function contract(): AppHandler {
  // Bytes without spaces, because encoding them at each request would let a caller without a key keep the server busy.
  let bytes: Uint8Array<ArrayBuffer> | undefined;
  return () => {
    bytes ??= new TextEncoder().encode(JSON.stringify(openApiDocument(ROUTES)));
    return new Response(bytes, { headers: { 'content-type': 'application/json' } });
  };
}
