import { type CallToolResult, McpServer, type StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import { toJsonSchema, toStandardJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import { LabelChoiceAnswer } from '../../../lib/schema/systemone-response.ts';
import { DecideResponse, ExtractResponse } from '../../../lib/schema/task-response.ts';
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

const described = <S extends v.GenericSchema>(schema: S, text: string) => v.pipe(schema, v.description(text));
const text = described(
  v.string(),
  'The text to judge. It may be long: further questions about the same text are cheap, because it is cached.',
);

const windows = v.optional(
  described(
    v.boolean(),
    'Whether a text that is too long for the model is read in parts, whose answers are merged. Default: false, an error.',
  ),
);

const DecideInput = strictObject({
  text,
  question: described(v.pipe(v.string(), v.minLength(1)), 'The question, such as: Is this urgent?'),
  options: v.optional(
    described(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(1024))),
        v.minLength(1),
        v.maxLength(255),
        distinct('invalid_value', (option) => option),
      ),
      'The allowed answers. Without them, the model answers in a few words of its own.',
    ),
  ),
  instruction: v.optional(described(v.string(), 'Extra guidance, such as when an option applies.')),
  unsure: v.optional(
    described(
      v.boolean(),
      'Whether the model may also say that the text does not tell; needs options. Default: false.',
    ),
  ),
  windows,
});
const DecideOutput = object({
  answer: v.string(),
  probabilities: v.optional(described(record(v.string(), v.number()), 'The probability of each option.')),
  p_unsure: v.optional(described(v.number(), 'The probability that the text does not tell, with unsure.')),
  abstained: v.optional(described(v.boolean(), 'True if the text most likely does not tell: do not use the answer.')),
});

const ExtractInput = strictObject({
  text,
  instruction: v.optional(described(v.string(), 'What to extract.'), 'Extract the requested fields.'),
  keys: v.optional(
    described(
      v.pipe(v.array(v.pipe(v.string(), v.minLength(1))), v.minLength(1), v.maxLength(128)),
      'Names of the fields. A field that the text does not have is null.',
    ),
  ),
  schema: v.optional(
    described(record(v.string(), v.unknown()), 'JSON Schema of the answer, or the short form {"total":"number"}.'),
  ),
  windows,
});
const ExtractOutput = object({ data: record(v.string(), v.unknown()) });

const Chosen = object({ answers: object({ decision: LabelChoiceAnswer }) });

/** Creates an MCP server with the tools `decide` and `extract`, which send their requests with `ask`. */
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
        const { text: context, question, options, instruction, unsure, ...rest } = validate(DecideInput, args);
        const inWindows = rest.windows ? { windows: {} } : {};
        if (options === undefined) {
          const said = { ...(instruction === undefined ? {} : { instruction }), ...(unsure ? { unsure } : {}) };
          const body = { context, question, max_output_tokens: 128, ...said, ...inWindows };
          return { answer: v.parse(DecideResponse, await ask('/decide', body, signal)).value };
        }
        const instructions = instruction === undefined ? question : `${question}\n${instruction}`;
        const questions = { decision: { type: 'choice', instructions, criteria: options, unsure } };
        const { answers } = v.parse(
          Chosen,
          await ask('/v1/systemone', { state: context, questions, ...inWindows }, signal),
        );
        const { choice, probabilities, x_p_unsure, x_abstained } = answers.decision;
        return {
          answer: choice,
          probabilities,
          ...(x_p_unsure === undefined ? {} : { p_unsure: x_p_unsure }),
          ...(x_abstained ? { abstained: true } : {}),
        };
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
  'Cheap judgements by a small local model: use decide to classify or check a text, and extract to get fields from it. ' +
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
