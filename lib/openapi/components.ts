import type * as v from 'valibot';
import * as calibration from '../calibration/calibration.ts';
import * as completion from '../schema/chat-completion.ts';
import * as chat from '../schema/chat-request.ts';
import * as tools from '../schema/chat-tools.ts';
import * as decisions from '../schema/decisions-request.ts';
import * as decided from '../schema/decisions-response.ts';
import { ErrorBody, ErrorDetails } from '../schema/error-body.ts';
import { Language } from '../schema/language.ts';
import { AudioInput, ImageInput } from '../schema/media.ts';
import * as message from '../schema/message.ts';
import { Device, Metrics } from '../schema/metrics.ts';
import * as list from '../schema/model-list.ts';
import * as operation from '../schema/model-operations.ts';
import * as responses from '../schema/responses-request.ts';
import * as responded from '../schema/responses-response.ts';
import { EdgeHealth, Health, ServerStatus, SlotState } from '../schema/status.ts';
import * as systemOne from '../schema/systemone-request.ts';
import * as answered from '../schema/systemone-response.ts';
import * as task from '../schema/task.ts';
import * as request from '../schema/task-request.ts';
import * as response from '../schema/task-response.ts';

/**
 * The schemas of `components.schemas` in the contract, by their names there. Where one contains another, the contract
 * has a `$ref`.
 */
export const COMPONENTS = {
  // the decision service
  RunTasksRequest: request.RunTasksRequest,
  DecideRequest: request.DecideRequest,
  ExtractRequest: request.ExtractRequest,
  ResponseFormat: request.ResponseFormat,
  Task: task.Task,
  DecideTask: task.DecideTask,
  ExtractTask: task.ExtractTask,
  Language,
  Message: message.Message,
  MessageContent: message.MessageContent,
  ContentPart: message.ContentPart,
  TextPart: message.TextPart,
  ImageUrlPart: message.ImageUrlPart,
  ImageUrl: message.ImageUrl,
  ImagePart: message.ImagePart,
  AudioPart: message.AudioPart,
  InputAudioPart: message.InputAudioPart,
  InputAudio: message.InputAudio,
  ImageInput,
  AudioInput,
  RunTasksResponse: response.RunTasksResponse,
  DecideResponse: response.DecideResponse,
  ExtractResponse: response.ExtractResponse,
  DecideResult: response.DecideResult,
  ExtractResult: response.ExtractResult,
  TaskResult: response.TaskResult,
  TaskResults: response.TaskResults,
  Choice: response.Choice,
  ResponseMessage: response.ResponseMessage,
  FinishReason: response.FinishReason,
  Usage: response.Usage,

  // OpenAI's Decisions
  DecisionsRequest: decisions.DecisionsRequest,
  DecisionItem: decisions.DecisionItem,
  DecisionPart: decisions.DecisionPart,
  DecisionText: decisions.DecisionText,
  DecisionImage: decisions.DecisionImage,
  DecisionAudio: decisions.DecisionAudio,
  DecisionJson: decisions.DecisionJson,
  DecisionOutputText: decisions.DecisionOutputText,
  DecisionRefusalText: decisions.DecisionRefusalText,
  DecisionQuestion: decisions.DecisionQuestion,
  PredicateQuestion: decisions.PredicateQuestion,
  ChoiceQuestion: decisions.ChoiceQuestion,
  DecisionChoice: decisions.DecisionChoice,
  ScoreQuestion: decisions.ScoreQuestion,
  DecisionLevel: decisions.DecisionLevel,
  ExtractQuestion: decisions.ExtractQuestion,
  DecisionsResponse: decided.DecisionsResponse,
  DecisionAnswer: decided.DecisionAnswer,
  PredicateAnswer: decided.PredicateAnswer,
  ChoiceAnswer: decided.ChoiceAnswer,
  ChoiceProbability: decided.ChoiceProbability,
  ScoreAnswer: decided.ScoreAnswer,
  LevelProbability: decided.LevelProbability,
  ExtractAnswer: decided.ExtractAnswer,
  ExtractedField: decided.ExtractedField,
  Evidence: decided.Evidence,
  RefusalAnswer: decided.RefusalAnswer,
  DecisionsUsage: decided.DecisionsUsage,
  OpenAiErrorBody: decided.OpenAiErrorBody,

  // System One
  SystemOneRequest: systemOne.SystemOneRequest,
  SystemOneQuestion: systemOne.SystemOneQuestion,
  NoulQuestion: systemOne.NoulQuestion,
  LabelChoiceQuestion: systemOne.LabelChoiceQuestion,
  LevelQuestion: systemOne.LevelQuestion,
  NamedExtractQuestion: systemOne.NamedExtractQuestion,
  SystemOneResponse: answered.SystemOneResponse,
  SystemOneAnswer: answered.SystemOneAnswer,
  NoulAnswer: answered.NoulAnswer,
  LabelChoiceAnswer: answered.LabelChoiceAnswer,
  LevelAnswer: answered.LevelAnswer,
  NamedExtractAnswer: answered.NamedExtractAnswer,
  SystemOneErrorBody: answered.SystemOneErrorBody,
  InvalidValue: answered.InvalidValue,

  // the model server
  ServerStatus,
  Health,
  EdgeHealth,
  SlotState,
  Device,
  ModelId: list.ModelIdText,
  NamedModel: list.NamedModel,
  ModelList: list.ModelList,
  Model: list.Model,
  ModelCalibration: list.ModelCalibration,
  CalibratedKinds: calibration.CalibratedKinds,
  TemperatureFit: calibration.TemperatureFit,
  CalibrationErrors: calibration.CalibrationErrors,
  ModelStatus: list.ModelStatus,
  LoadRequest: operation.LoadRequest,
  LoadResponse: operation.LoadResponse,
  UnloadResponse: operation.UnloadResponse,
  DownloadRequest: operation.DownloadRequest,
  DownloadResponse: operation.DownloadResponse,
  DownloadProgress: operation.DownloadProgress,
  DownloadEvent: operation.DownloadEvent,
  DeleteRequest: operation.DeleteRequest,
  DeleteResponse: operation.DeleteResponse,
  RemovedFiles: operation.RemovedFiles,
  ChatCompletionRequest: chat.ChatCompletionRequest,
  ChatMessage: chat.ChatMessage,
  ChatContentPart: chat.ChatContentPart,
  ChatTextPart: chat.ChatTextPart,
  ChatImageUrlPart: chat.ChatImageUrlPart,
  ChatImagePart: chat.ChatImagePart,
  ChatAudioPart: chat.ChatAudioPart,
  ChatInputAudioPart: chat.ChatInputAudioPart,
  ChatTool: tools.ChatTool,
  ChatToolChoice: tools.ChatToolChoice,
  ChatNamedTool: tools.ChatNamedTool,
  ResponsesTool: tools.ResponsesTool,
  ResponsesToolChoice: tools.ResponsesToolChoice,
  ResponsesNamedTool: tools.ResponsesNamedTool,
  ChatToolCall: tools.ChatToolCall,
  ChatToolCallDelta: tools.ChatToolCallDelta,
  ChatResponseFormat: chat.ChatResponseFormat,
  TextFormat: chat.TextFormat,
  JsonObjectFormat: chat.JsonObjectFormat,
  JsonSchemaFormat: chat.JsonSchemaFormat,
  ChatCompletion: completion.ChatCompletion,
  ChatChoice: completion.ChatChoice,
  ChatAnswer: completion.ChatAnswer,
  ChatFinishReason: completion.ChatFinishReason,
  ChatCompletionChunk: completion.ChatCompletionChunk,
  ChatChunkChoice: completion.ChatChunkChoice,
  ChatDelta: completion.ChatDelta,
  ChatUsage: completion.ChatUsage,
  ChatLogprobs: completion.ChatLogprobs,
  TokenLogprob: completion.TokenLogprob,
  TokenAlternative: completion.TokenAlternative,
  Metrics,
  ResponsesRequest: responses.ResponsesRequest,
  ResponsesItem: responses.ResponsesItem,
  ResponsesPart: responses.ResponsesPart,
  ResponsesTextFormat: responses.ResponsesTextFormat,
  ResponsesJsonSchemaFormat: responses.ResponsesJsonSchemaFormat,
  ResponsesAnswer: responded.ResponsesAnswer,
  ResponsesOutputItem: responded.ResponsesOutputItem,
  ResponsesMessage: responded.ResponsesMessage,
  ResponsesReasoning: responded.ResponsesReasoning,
  ResponsesFunctionCall: responded.ResponsesFunctionCall,
  ResponsesOutputText: responded.ResponsesOutputText,
  ResponsesReasoningText: responses.ResponsesReasoningText,
  ResponsesLogprob: responded.ResponsesLogprob,
  ResponsesUsage: responded.ResponsesUsage,
  ResponsesEvent: responded.ResponsesEvent,
  ResponsesLifeCycleEvent: responded.ResponsesLifeCycleEvent,
  ResponsesItemEvent: responded.ResponsesItemEvent,
  ResponsesPartEvent: responded.ResponsesPartEvent,
  ResponsesDeltaEvent: responded.ResponsesDeltaEvent,
  ResponsesDoneEvent: responded.ResponsesDoneEvent,
  ResponsesArgumentsDeltaEvent: responded.ResponsesArgumentsDeltaEvent,
  ResponsesArgumentsDoneEvent: responded.ResponsesArgumentsDoneEvent,
  ResponsesErrorEvent: responded.ResponsesErrorEvent,

  // both APIs
  ErrorBody,
  ErrorDetails,
} satisfies Record<string, v.GenericSchema>;
