import type * as v from 'valibot';
import * as calibration from '../calibration/calibration.ts';
import * as batches from '../schema/batches.ts';
import * as completion from '../schema/chat-completion.ts';
import * as chat from '../schema/chat-request.ts';
import * as tools from '../schema/chat-tools.ts';
import * as decisions from '../schema/decisions-request.ts';
import * as decided from '../schema/decisions-response.ts';
import * as errors from '../schema/error-body.ts';
import * as extractions from '../schema/extractions-request.ts';
import * as extracted from '../schema/extractions-response.ts';
import * as google from '../schema/google-decisions.ts';
import * as language from '../schema/language.ts';
import * as message from '../schema/message.ts';
import * as metrics from '../schema/metrics.ts';
import * as list from '../schema/model-list.ts';
import * as operation from '../schema/model-operations.ts';
import * as rerank from '../schema/rerank.ts';
import * as responses from '../schema/responses-request.ts';
import * as responded from '../schema/responses-response.ts';
import * as status from '../schema/status.ts';
import * as many from '../schema/systemone-batch.ts';
import * as systemOne from '../schema/systemone-request.ts';
import * as answered from '../schema/systemone-response.ts';
import * as task from '../schema/task.ts';
import * as request from '../schema/task-request.ts';
import * as response from '../schema/task-response.ts';

/**
 * Returns the schemas that a module exports under these names, which are separated by white space. They have the same
 * names in the contract.
 */
function schemas(module: object, names: string): [name: string, schema: v.GenericSchema][] {
  const exported = new Map(Object.entries(module));
  return names.split(/\s+/).map((name) => {
    const schema = exported.get(name);
    if (!schema) throw new Error(`There is no schema ${name}.`);
    return [name, schema];
  });
}

/**
 * The schemas of `components.schemas` in the contract, by their names there. Where one contains another, the contract
 * has a `$ref`.
 */
export const COMPONENTS: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries([
  // the decision service
  ...schemas(request, 'RunTasksRequest DecideRequest ExtractRequest ResponseFormat'),
  ...schemas(task, 'Task DecideTask MultiTask ExtractTask'),
  ...schemas(
    extractions,
    `ExtractionsRequest ExtractionField MemberField TextField NumberField DateField TimeField DatetimeField
     DurationField BooleanField EnumField ListField ObjectField EstimateField ForecastField`,
  ),
  ...schemas(
    extracted,
    `ExtractionsResponse FieldAnswer TextAnswer NumberAnswer DurationAnswer DateAnswer TimeAnswer DatetimeAnswer
     BooleanAnswer EnumAnswer ListAnswer EstimateAnswer ObjectAnswer RunResponse RunErrorBody`,
  ),
  ...schemas(language, 'Language'),
  ...schemas(
    message,
    `Message MessageContent ContentPart TextPart ImageUrlPart ImageUrl ImagePart AudioPart InputAudioPart InputAudio
     ImageInput AudioInput`,
  ),
  ...schemas(
    response,
    `RunTasksResponse DecideResponse ExtractResponse DecideResult MultiResult ExtractResult TaskResult TaskResults
     Choice ResponseMessage FinishReason Usage`,
  ),

  // OpenAI's Decisions
  ...schemas(
    decisions,
    `DecisionsRequest DecisionItem DecisionPart DecisionText DecisionImage DecisionAudio DecisionJson
     DecisionOutputText DecisionRefusalText DecisionQuestion PredicateQuestion ChoiceQuestion DecisionChoice
     ScoreQuestion DecisionLevel MultiQuestion ExtractQuestion`,
  ),
  ...schemas(
    decided,
    `DecisionsResponse DecisionAnswer PredicateAnswer ChoiceAnswer ChoiceProbability ScoreAnswer LevelProbability
     MultiAnswer ExtractAnswer ExtractedField Evidence DecisionEvidence RefusalAnswer DecisionsUsage OpenAiErrorBody`,
  ),

  // ranking
  ...schemas(rerank, 'RerankRequest RerankResponse RankResult TeiRanks TeiRank'),

  // Google's Decisions
  ...schemas(
    google,
    `GoogleDecisionsRequest GooglePart GoogleText GoogleImage GoogleAudio GoogleQuestion GoogleNoul GoogleChoice
     GoogleScore GoogleMulti GoogleDecisionsResponse GoogleAnswer GoogleNoulAnswer GoogleChoiceAnswer
     GoogleScoreAnswer GoogleMultiAnswer GoogleErrorBody`,
  ),

  // System One
  ...schemas(
    systemOne,
    `SystemOneRequest SystemOneQuestion NoulQuestion LabelChoiceQuestion LevelQuestion LabelMultiQuestion
     NamedExtractQuestion`,
  ),
  ...schemas(
    answered,
    `SystemOneResponse SystemOneAnswer NoulAnswer LabelChoiceAnswer LevelAnswer LabelMultiAnswer NamedExtractAnswer
     SystemOneErrorBody`,
  ),
  ...schemas(batches, 'FileObject FileList FileDeleted CreateBatchRequest Batch BatchList'),
  ...schemas(many, 'SystemOneBatchRequest SystemOneBatchResponse SystemOneBatchLine SystemOneFailure'),
  ...schemas(answered, 'InvalidValue'),

  // the model server
  ...schemas(status, `ServerStatus Health EdgeHealth Liveness Readiness InferenceServer InferenceModel ModelReadiness`),
  ['SlotState', status.MemoryState],
  ...schemas(metrics, 'Device'),
  ['ModelId', list.ModelIdText],
  ...schemas(list, 'NamedModel ModelList Model ModelCalibration'),
  ...schemas(
    calibration,
    `CalibratedKinds TemperatureFit CalibrationErrors Thresholds CertifiedThresholds GroupThreshold`,
  ),
  ...schemas(list, 'ModelStatus'),
  ...schemas(
    operation,
    `LoadRequest LoadResponse UnloadResponse DownloadRequest DownloadResponse DownloadProgress DownloadEvent
     DeleteRequest DeleteResponse RemovedFiles`,
  ),
  ...schemas(
    chat,
    `ChatCompletionRequest CompletionRequest ChatMessage ChatContentPart ChatTextPart ChatImageUrlPart ChatImagePart
     ChatAudioPart ChatInputAudioPart ChatRefusalPart ChatThinkingPart ChatReasoningPart`,
  ),
  ...schemas(
    tools,
    `ChatTool ChatToolChoice ChatNamedTool ChatAllowedTools ResponsesTool ResponsesToolChoice ResponsesNamedTool
     ResponsesAllowedTools ChatToolCall ChatToolCallDelta`,
  ),
  ...schemas(chat, 'ChatResponseFormat TextFormat JsonObjectFormat JsonSchemaFormat'),
  ...schemas(
    completion,
    `ChatCompletion ChatChoice ChatAnswer ChatFinishReason ChatCompletionChunk Completion ChatChunkChoice ChatDelta
     ChatUsage ChatLogprobs TokenLogprob TokenAlternative`,
  ),
  ...schemas(metrics, 'Metrics'),
  ...schemas(responses, 'ResponsesRequest ResponsesItem ResponsesPart ResponsesTextFormat ResponsesJsonSchemaFormat'),
  ...schemas(
    responded,
    `ResponsesAnswer ResponsesOutputItem ResponsesMessage ResponsesReasoning ResponsesFunctionCall
     ResponsesOutputText`,
  ),
  ...schemas(responses, 'ResponsesReasoningText'),
  ...schemas(
    responded,
    `ResponsesLogprob ResponsesUsage ResponsesEvent ResponsesLifeCycleEvent ResponsesItemEvent ResponsesPartEvent
     ResponsesDeltaEvent ResponsesDoneEvent ResponsesArgumentsDeltaEvent ResponsesArgumentsDoneEvent
     ResponsesErrorEvent`,
  ),

  // both APIs
  ...schemas(errors, 'ErrorBody ErrorDetails'),
]);
