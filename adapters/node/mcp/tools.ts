import { type CallToolResult, McpServer, type StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import { toJsonSchema, toStandardJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import { DecisionEvidence } from '../../../lib/schema/decisions-response.ts';
import { evidence, maxError, selectable, selection } from '../../../lib/schema/question-fields.ts';
import { MOST_DOCUMENTS, RerankResponse } from '../../../lib/schema/rerank.ts';
import { LabelChoiceAnswer, LabelMultiAnswer } from '../../../lib/schema/systemone-response.ts';
import { DecideResponse, ExtractResponse } from '../../../lib/schema/task-response.ts';
import { described, nonEmpty, optional, probability, whole } from '../../../lib/schema/values.ts';
import { object, record, strictObject } from '../../../lib/validation/objects.ts';
import { distinct } from '../../../lib/validation/rules.ts';
import { validate } from '../../../lib/validation/validate.ts';
import { VERSION } from '../../../lib/version.ts';

/**
 * Sends `body`, with the model added, to a path of the decision service. Returns the parsed JSON of the response.
 * Rejects if `signal` aborts.
 *
 * @throws AssayError the error in the response, if its status is not a success; `model_not_loaded` if there is no model
 *   to ask
 * @throws NoServerError if the server cannot be reached
 */
export type Ask = (path: string, body: object, signal: AbortSignal) => Promise<unknown>;

const text = described(
  v.string(),
  'The text to judge. It may be long: further questions about the same text are cheap, because it is cached.',
);

const windows = optional(
  v.boolean(),
  'Whether a text that is too long for the model is read in parts, whose answers are merged. Default: false, an error.',
);

const question = described(nonEmpty, 'The question, such as: Is this urgent?');
const options = v.pipe(
  v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(1024))),
  v.minLength(1),
  v.maxLength(255),
  distinct('invalid_value', (option) => option),
);

const DecideInput = strictObject({
  text,
  question,
  options: optional(options, 'The allowed answers. Without them, the model answers in a few words of its own.'),
  instruction: optional(v.string(), 'Extra guidance, such as when an option applies.'),
  unsure: optional(
    v.boolean(),
    'Whether the model may also say that the text does not tell; needs options. Default: false.',
  ),
  evidence,
  max_error: maxError,
  windows,
});
const DecideOutput = object({
  answer: v.string(),
  probabilities: optional(record(v.string(), v.number()), 'The probability of each option.'),
  p_unsure: optional(v.number(), 'The probability that the text does not tell, with unsure.'),
  abstained: optional(v.boolean(), 'True if the text most likely does not tell: do not use the answer.'),
  automated: optional(
    v.nullable(v.boolean()),
    'With max_error: whether the answer may be used unchecked; null if nothing is certified for such questions.',
  ),
  evidence: optional(
    v.array(v.object({ ...DecisionEvidence.entries })),
    'The parts of the text that decide, with their places, of a question with evidence.',
  ),
});

const SelectInput = v.pipe(
  strictObject({
    text,
    question,
    options: described(options, 'The labels, any number of which may apply.'),
    ...selection,
    windows,
  }),
  selectable(({ options }) => options.length),
);
const SelectOutput = object({
  selected: described(v.array(v.string()), 'The labels that apply, in the order sent.'),
  probabilities: described(record(v.string(), v.number()), 'The probability that each label applies.'),
  set_confidence: described(probability, 'The probability that exactly these apply, if they are independent.'),
});

const RankInput = strictObject({
  query: described(nonEmpty, 'What the documents are ranked by, such as a question.'),
  documents: described(v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(MOST_DOCUMENTS)), 'The documents.'),
  instruction: optional(v.string(), 'What makes a document relevant.'),
  top_n: optional(whole(1), 'How many documents to return. Default: all.'),
});
const RankOutput = object({
  results: described(
    v.array(
      object({
        index: described(v.number(), 'Index of the document in the list sent.'),
        relevance: described(v.number(), 'The probability that the document is relevant.'),
      }),
    ),
    'The documents, the most relevant first.',
  ),
});

const ExtractInput = strictObject({
  text,
  instruction: v.optional(described(v.string(), 'What to extract.'), 'Extract the requested fields.'),
  keys: optional(
    v.pipe(v.array(nonEmpty), v.minLength(1), v.maxLength(128)),
    'Names of the fields. A field that the text does not have is null.',
  ),
  schema: optional(record(v.string(), v.unknown()), 'JSON Schema of the answer, or the short form {"total":"number"}.'),
  windows,
});
const ExtractOutput = object({ data: record(v.string(), v.unknown()) });

const Chosen = object({ answers: object({ decision: LabelChoiceAnswer }) });
const Selected = object({ answers: object({ decision: LabelMultiAnswer }) });

/** Creates an MCP server with the tools `decide`, `select`, `extract` and `rank`, which send requests with `ask`. */
export function createMcpServer(ask: Ask): McpServer {
  const server = new McpServer({ name: 'assay', version: VERSION }, { instructions: INSTRUCTIONS });
  const annotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

  server.registerTool(
    'decide',
    {
      title: 'Decide',
      description:
        'Answers a question about a text with one of the options, and returns the probability of each option.',
      inputSchema: shown(DecideInput),
      outputSchema: toStandardJsonSchema(DecideOutput),
      annotations,
    },
    (args, { mcpReq: { signal } }) =>
      answered(async () => {
        const { text: context, question, options, max_error, windows, ...said } = validate(DecideInput, args);
        const shared = { ...(max_error === undefined ? {} : { max_error }), ...(windows ? { windows: {} } : {}) };
        if (options === undefined) {
          const body = { context, question, max_output_tokens: 128, ...said, ...shared };
          return { answer: v.parse(DecideResponse, await ask('/decide', body, signal)).value };
        }
        const { instruction, ...more } = said;
        const instructions = instruction === undefined ? question : `${question}\n${instruction}`;
        const questions = { decision: { type: 'choice', instructions, criteria: options, ...more } };
        const body = { state: context, questions, ...shared };
        const { answers } = v.parse(Chosen, await ask('/v1/systemone', body, signal));
        const { choice, probabilities, x_p_unsure, x_abstained, x_automated, x_evidence } = answers.decision;
        return {
          answer: choice,
          probabilities,
          ...(x_p_unsure === undefined ? {} : { p_unsure: x_p_unsure }),
          ...(x_abstained ? { abstained: true } : {}),
          ...(x_automated === undefined ? {} : { automated: x_automated }),
          ...(x_evidence === undefined ? {} : { evidence: x_evidence }),
        };
      }),
  );

  server.registerTool(
    'select',
    {
      title: 'Select',
      description: 'Selects all labels that apply to a text, and returns the probability of each label.',
      inputSchema: shown(SelectInput),
      outputSchema: toStandardJsonSchema(SelectOutput),
      annotations,
    },
    (args, { mcpReq: { signal } }) =>
      answered(async () => {
        const { text: state, question, options, windows, ...rules } = validate(SelectInput, args);
        const questions = { decision: { type: 'multi', instructions: question, criteria: options, ...rules } };
        const body = { state, questions, ...(windows ? { windows: {} } : {}) };
        const { answers } = v.parse(Selected, await ask('/v1/systemone', body, signal));
        const { selected, probabilities, set_confidence } = answers.decision;
        return { selected, probabilities, set_confidence };
      }),
  );

  server.registerTool(
    'rank',
    {
      title: 'Rank',
      description: 'Ranks documents by the probability that each is relevant to a query.',
      inputSchema: shown(RankInput),
      outputSchema: toStandardJsonSchema(RankOutput),
      annotations,
    },
    (args, { mcpReq: { signal } }) =>
      answered(async () => {
        const { results } = v.parse(RerankResponse, await ask('/v1/rerank', validate(RankInput, args), signal));
        return { results: results.map(({ index, relevance_score: relevance }) => ({ index, relevance })) };
      }),
  );

  server.registerTool(
    'extract',
    {
      title: 'Extract',
      description: 'Extracts fields from a text as JSON: the named keys, or what a JSON Schema describes.',
      inputSchema: shown(ExtractInput),
      outputSchema: toStandardJsonSchema(ExtractOutput),
      annotations,
    },
    (args, { mcpReq: { signal } }) =>
      answered(async () => {
        const { text: context, instruction, keys, schema, ...rest } = validate(ExtractInput, args);
        const shape = { ...(keys === undefined ? {} : { keys }), ...(schema === undefined ? {} : { schema }) };
        const inWindows = rest.windows ? { windows: {} } : {};
        const body = { context, instruction, max_output_tokens: 512, ...shape, ...inWindows };
        return { data: v.parse(ExtractResponse, await ask('/extract', body, signal)).result };
      }),
  );
  return server;
}

/**
 * Returns the JSON Schema of a tool's arguments in the form that the SDK lists. Its `validate` accepts any arguments:
 * the tool validates them itself, because the SDK would answer with Valibot's text, which does not tell the agent what
 * to send.
 */
function shown(schema: v.GenericSchema): StandardSchemaWithJSON<unknown, unknown> {
  // Typed as the SDK wants it; Valibot's type of a JSON Schema has no index signature.
  const written = () => ({ ...toJsonSchema(schema, { ignoreActions: ['rule'] }) });
  const jsonSchema = { input: written, output: written };
  return { '~standard': { version: 1, vendor: 'valibot', jsonSchema, validate: (value) => ({ value }) } };
}

const INSTRUCTIONS =
  'Cheap judgements by a small local model: use decide to classify or check a text, select to label it, extract to get ' +
  'fields from it, and rank to order documents by relevance. ' +
  'Nothing leaves this machine.';

/**
 * Returns the result of `work` as the result of a tool, both as text and as structured content. An `AssayError` becomes
 * an error result with its message, from which the agent can correct its call. Throws any other error of `work`.
 */
async function answered(work: () => Promise<Record<string, unknown>>): Promise<CallToolResult> {
  try {
    const data = await work();
    return { content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: data };
  } catch (error) {
    if (!(error instanceof AssayError)) throw error;
    return { content: [{ type: 'text', text: `${error.code}: ${error.message}` }], isError: true };
  }
}
