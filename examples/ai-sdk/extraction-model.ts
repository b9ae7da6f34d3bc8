import type { experimental_extract as extract } from 'ai';

type ExtractionModel = Parameters<typeof extract>[0]['model'];
type CallOptions = Parameters<ExtractionModel['doExtract']>[0];
type Result = Awaited<ReturnType<ExtractionModel['doExtract']>>;
type Answer = Result['answers'][string];
type Source = { type: 'text'; part: number; start: number; end: number };

export interface Settings {
  /** Address of the server. Default: http://127.0.0.1:8080. */
  baseUrl?: string;
  apiKey: string;
  /** Id of the model; the loaded one by default. */
  model?: string;
  fetch?: typeof fetch;
}

/** Creates a model for `experimental_extract` of the AI SDK that asks an Assay server. */
export function assayExtraction(settings: Settings): ExtractionModel {
  const { baseUrl = 'http://127.0.0.1:8080', apiKey, model, fetch: send = fetch } = settings;
  return {
    specificationVersion: 'v4',
    provider: 'assay',
    modelId: model ?? 'loaded',
    supportedFieldTypes: ['text', 'number', 'date', 'time', 'datetime', 'duration', 'list'],
    async doExtract({ state, fields, referenceDate, maxOutputTokens, abortSignal, headers }: CallOptions) {
      const parts = state.map((part) => {
        if (part.type === 'text') return part.text;
        if (part.type === 'json') return JSON.stringify(part.value);
        throw new Error('Send text or JSON; this model object does not send files.');
      });
      const body = {
        ...(model === undefined ? {} : { model }),
        state: parts.join('\n'),
        fields,
        options: { span_unit: 'utf16' },
        ...(referenceDate === undefined ? {} : { reference_date: referenceDate }),
        ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
      };
      const response = await send(`${baseUrl}/v1/extractions`, {
        method: 'POST',
        headers: { ...withoutNulls(headers), authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        ...(abortSignal ? { signal: abortSignal } : {}),
      });
      const sent = await response.json();
      if (!response.ok) throw new Error(sent.error?.message ?? `HTTP ${response.status}`);
      const answers = Object.entries(sent.answers as Record<string, Sent>).map(([name, answer]) => [
        name,
        answerOf(answer, parts),
      ]);
      return {
        answers: Object.fromEntries(answers),
        usage: { inputTokens: sent.usage.input_tokens, outputTokens: sent.usage.output_tokens },
        warnings: [],
        response: { id: sent.id, modelId: sent.model },
      } satisfies Result;
    },
  };
}

interface Sent {
  type: string;
  value: unknown;
  guess?: unknown;
  p_null?: number;
  confidence: number;
  span?: [number, number];
  spans?: [number, number][];
  confidences?: number[];
}

function answerOf({ type, value, guess, p_null, confidence, span, spans, confidences }: Sent, parts: string[]): Answer {
  const items = confidences?.map((one, i) => ({ confidence: one, ...sourceOf(spans?.[i], parts) }));
  // A cast: the server answers each field with a value of its type.
  return {
    type,
    value,
    ...(guess === undefined ? {} : { guess }),
    ...(p_null === undefined ? {} : { pNull: p_null }),
    confidence,
    ...sourceOf(span, parts),
    ...(items ? { items } : {}),
  } as Answer;
}

/** Returns the part of the state that contains a span of the joined parts, and the span in that part. */
function sourceOf(span: [number, number] | undefined, parts: string[]): { source?: Source } {
  let before = 0;
  for (const [part, text] of parts.entries()) {
    if (span && span[0] >= before && span[1] <= before + text.length)
      return { source: { type: 'text', part, start: span[0] - before, end: span[1] - before } };
    before += text.length + 1;
  }
  return {};
}

function withoutNulls(headers: Record<string, string | undefined> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
