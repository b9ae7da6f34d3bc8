import type * as v from 'valibot';
import type { BatchAnswer, Task } from '../lib/backend.ts';
import { MOST_TASKS, TaskBatch } from '../lib/contract/batch.ts';
import { checkedBatch, INTERNAL_LIMITS } from '../lib/contract/internal.ts';
import type { ErrorFormat } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import type { BodyLimits } from '../lib/json/body.ts';
import { type JsonValue, sourceText } from '../lib/json/parse.ts';
import { isObject, property } from '../lib/json/property.ts';
import { batchOfDecisions, decisionsBody } from '../lib/questions/decisions.ts';
import type { SpanUnit } from '../lib/questions/evidence.ts';
import { batchOfExtractions, extractionsBody, hasAbsentOption, spanUnitOf } from '../lib/questions/extractions.ts';
import { batchOfGoogleDecisions, googleDecisionsBody } from '../lib/questions/google-decisions.ts';
import { type QuestionAnswers, questionAnswers } from '../lib/questions/question-answers.ts';
import { batchOfRerank, rerankBody, teiRerankBody } from '../lib/questions/rerank.ts';
import { type QuestionSettings, settingsOf } from '../lib/questions/settings.ts';
import { batchOfSystemOne, systemOneBody } from '../lib/questions/systemone.ts';
import { DecisionsRequest } from '../lib/schema/decisions-request.ts';
import { ExtractionsRequest } from '../lib/schema/extractions-request.ts';
import { GoogleDecisionsRequest } from '../lib/schema/google-decisions.ts';
import type { EvidenceWish } from '../lib/schema/question-fields.ts';
import { RerankRequest, TeiRerankRequest } from '../lib/schema/rerank.ts';
import { SystemOneRequest } from '../lib/schema/systemone-request.ts';
import { DecideRequest, ExtractRequest, RunTasksRequest } from '../lib/schema/task-request.ts';
import type { Windows } from '../lib/schema/windows.ts';
import { batchOfDecision, batchOfExtraction, batchOfTasks } from '../lib/tasks/batch.ts';
import { decisionBody, extractionBody, tasksBody } from '../lib/tasks/response.ts';
import { validate } from '../lib/validation/validate.ts';
import type { MergeRules } from '../lib/windows/merge-answers.ts';
import { checkEvidence, type Questions, wishesByTask, wishesOf } from './evidence.ts';

/*
 * The formats of requests that one batch of tasks answers. To add one, write its schema and its two conversions, add an
 * object here, and a row with its path to `ROUTES` (routes.ts).
 */

/** Holds what a format may need to answer a request besides its body. */
export interface FormatContext {
  requestId: string;
  /** The server's settings for decisions, where a request does not set its own. */
  questions: QuestionSettings;
}

/** Holds what a request consists of besides its checked body. */
interface Sent {
  /** The JSON text of the body. */
  text?: string;
  /** Value of the path's parameter `model`, on a path that has one. */
  model?: string;
}

/** Describes a format of requests that one batch answers. */
interface FormatParts<TSchema extends v.GenericSchema> {
  /** Format of the errors. */
  api: ErrorFormat;
  schema: TSchema;
  /** Converts a valid request to the batch that answers it. */
  batchOf(request: v.InferOutput<TSchema>, sent: Sent): TaskBatch;
  /** Writes the body of the response as JSON text. */
  bodyOf(answer: QuestionAnswers, request: v.InferOutput<TSchema>, context: FormatContext): string;
  /**
   * Tells whether a body on a path that serves several formats has this one, and no other. If no format claims a body,
   * the path's first format applies.
   */
  claims?(body: JsonValue): boolean;
  /** True if the response has the answer to each task, not to each question. */
  raw?: true;
  /** Limits of the body, if not those of the public routes. */
  limits?: BodyLimits;
  /** Tells whether images may be parts of a `multipart/form-data` body. */
  multipart?: true;
  /** Returns how the evidence for each question is found; by default, as the request's questions say. */
  wishes?(request: v.InferOutput<TSchema>): readonly (EvidenceWish | false | undefined)[];
  /** Unit of places in the text, for requests that let it be read in windows; UTF-16 code units by default. */
  spanUnit?(request: v.InferOutput<TSchema>): SpanUnit;
  /** Tells whether the last option of a task means that the input does not contain the value. */
  absentIsLast?(task: Task): boolean;
}

/** Holds the fields that requests of several formats share. */
interface Shared {
  windows?: Windows;
  questions?: Questions;
  span_unit?: SpanUnit;
}

/** Represents a format without the type of its requests. */
export interface Format {
  readonly api: ErrorFormat;
  readonly schema: v.GenericSchema;
  readonly limits: BodyLimits;
  readonly multipart: boolean;
  claims(body: JsonValue): boolean;
  /** Reads a body as a batch. Throws the error of its first issue if it is not valid. */
  read(
    body: JsonValue,
    model?: string,
  ): {
    batch: TaskBatch;
    bodyOf(answer: BatchAnswer, context: FormatContext): string;
    /** Settings for a text that is read in windows; absent: it is read as a whole. */
    windows?: { windows: Windows; rules: MergeRules };
    /** Says how the evidence for the answer to each task is found; absent: no question asks for it. */
    evidence?: readonly (EvidenceWish | undefined)[];
  };
}

function format<TSchema extends v.GenericSchema>(parts: FormatParts<TSchema>): Format {
  const { api, schema, batchOf, bodyOf, claims = () => false, raw, limits = {}, multipart = false } = parts;
  return {
    api,
    schema,
    limits,
    multipart,
    claims,
    read(body, model) {
      const request = validate(schema, body);
      const text = sourceText(body);
      const sent = { ...(text === undefined ? {} : { text }), ...(model === undefined ? {} : { model }) };
      const batch = batchOf(request, sent);
      checkAsked(batch);
      const { windows, questions = [] } = request as Shared;
      const evidence = wishesByTask(batch, parts.wishes?.(request) ?? wishesOf(questions));
      if (evidence && windows) throw evidenceInWindows();
      if (evidence) checkEvidence(batch, evidence);
      return {
        batch,
        ...(evidence ? { evidence } : {}),
        ...(windows ? { windows: { windows, rules: rulesOf(parts, request, windows) } } : {}),
        bodyOf: (answer, context) => bodyOf(raw ? answer : questionAnswers(batch, answer), request, context),
      };
    },
  };
}

function rulesOf<TSchema extends v.GenericSchema>(
  { spanUnit, absentIsLast = () => false }: FormatParts<TSchema>,
  request: v.InferOutput<TSchema>,
  { combine }: Windows,
): MergeRules {
  const { span_unit } = request as Shared;
  return {
    ...(combine ? { combine } : {}),
    unit: spanUnit?.(request) ?? span_unit ?? 'utf16',
    absentIsLast: (task) => (task.type === 'decide' && task.unsure === true) || absentIsLast(task),
  };
}

export const TASKS = format({
  api: 'decisions',
  schema: RunTasksRequest,
  batchOf: batchOfTasks,
  bodyOf: (answer, request, { requestId }) => tasksBody(requestId, answer, request),
  wishes: ({ tasks }) => tasks.map((task) => ('evidence' in task ? task.evidence : undefined)),
});

export const DECISION = format({
  api: 'decisions',
  schema: DecideRequest,
  batchOf: batchOfDecision,
  bodyOf: (answer, request, { requestId }) => decisionBody(requestId, answer, request),
  wishes: ({ evidence }) => [evidence],
});

export const EXTRACTION = format({
  api: 'decisions',
  schema: ExtractRequest,
  batchOf: batchOfExtraction,
  bodyOf: (answer, _, { requestId }) => extractionBody(requestId, answer),
});

// Some gateways send the body of either decision format to the path of the other one.

export const OPENAI_DECISIONS = format({
  api: 'openai',
  schema: DecisionsRequest,
  batchOf: batchOfDecisions,
  bodyOf: (answer, request, { questions }) => decisionsBody(request, answer, settingsOf(request, questions)),
  claims: (body) => has(body, 'input') && !has(body, 'state') && !hasNamedQuestions(body),
});

const systemOne: FormatParts<typeof SystemOneRequest> = {
  api: 'systemone',
  schema: SystemOneRequest,
  multipart: true,
  batchOf: (request, { text }) => batchOfSystemOne(request, text),
  bodyOf: (answer, request, { questions }) => systemOneBody(request, answer, settingsOf(request, questions)),
  claims: (body) => has(body, 'state') && !has(body, 'input'),
};
export const SYSTEM_ONE = format(systemOne);

/** System One with errors that OpenRouter's clients read. */
export const OPENROUTER = format({ ...systemOne, api: 'google' });

export const GOOGLE_DECISIONS = format({
  api: 'google',
  schema: GoogleDecisionsRequest,
  batchOf: batchOfGoogleDecisions,
  bodyOf: (answer, request) => googleDecisionsBody(request, answer),
  claims: (body) => has(body, 'input') && !has(body, 'state') && hasNamedQuestions(body),
});

const extractions: FormatParts<typeof ExtractionsRequest> = {
  api: 'openai',
  schema: ExtractionsRequest,
  multipart: true,
  spanUnit: spanUnitOf,
  absentIsLast: hasAbsentOption,
  batchOf: (request, { text }) => batchOfExtractions(request, text),
  bodyOf: (answer, request, { requestId, questions }) => extractionsBody(request, answer, requestId, questions),
};
export const EXTRACTIONS = format(extractions);

/** The same on the run paths of Workers AI, which name the model and wrap the answer. */
export const RUN = format({
  ...extractions,
  api: 'workersai',
  batchOf: (request, { text, model }) =>
    batchOfExtractions({ ...request, ...(model === undefined ? {} : { model }) }, text),
  bodyOf: (...answered) => `{"result":${extractions.bodyOf(...answered)},"success":true,"errors":[],"messages":[]}`,
});

export const RERANK = format({
  api: 'openai',
  schema: RerankRequest,
  batchOf: batchOfRerank,
  bodyOf: (answer, request, { requestId }) => rerankBody(request, answer, requestId),
});

/** The same as Text Embeddings Inference has it. */
export const TEI_RERANK = format({
  api: 'openai',
  schema: TeiRerankRequest,
  batchOf: batchOfRerank,
  bodyOf: (answer, request) => teiRerankBody(request, answer),
  claims: (body) => has(body, 'texts') && !has(body, 'documents'),
});

/** The format of an edge: the batch itself, for a box of the same version. */
export const INTERNAL_TASKS = format({
  api: 'models',
  schema: TaskBatch,
  batchOf: checkedBatch,
  bodyOf: (answer) => JSON.stringify(answer),
  raw: true,
  limits: INTERNAL_LIMITS,
});

/**
 * Checks what the schemas of requests cannot: the number of tasks, and that thresholds can be certified for all answers
 * if the batch has `maxError`.
 *
 * @throws AssayError `invalid_value` or `unsupported_parameter`
 */
export function checkAsked({ tasks, probabilities }: TaskBatch): void {
  if (tasks.length > MOST_TASKS) {
    const message = `The labels of multi questions count as questions: there are ${tasks.length} together, and may be ${MOST_TASKS}. Send fewer in one request.`;
    throw new AssayError('invalid_value', message);
  }
  if (probabilities?.maxError === undefined) return;
  const refused = (message: string) => new AssayError('unsupported_parameter', message, { param: 'max_error' });
  if (!probabilities.calibrated) {
    throw refused('max_error needs calibrated probabilities. Omit it, or calibrated.');
  }
  const other = tasks.find((task) => task.type === 'extract' || task.first !== undefined || !task.options);
  if (!other) return;
  const kind = other.type === 'extract' ? 'extractions' : other.options ? 'multi' : 'decisions without options';
  throw refused(
    `max_error is for questions with options, one of which is right, and not for ${kind}. Send those in another request; the same text is read once.`,
  );
}

function evidenceInWindows(): AssayError {
  return new AssayError('invalid_value', 'evidence needs the input in one piece. Omit it, or windows.', {
    param: 'windows',
  });
}

/** Tells whether a body has questions by name, as Google's has; OpenAI's has a list of them. */
function hasNamedQuestions(body: JsonValue): boolean {
  return isObject(property(body, 'questions'));
}

function has(body: JsonValue, name: string): boolean {
  return isObject(body) && Object.hasOwn(body, name);
}
