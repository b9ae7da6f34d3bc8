import type { Row } from './row.ts';
import { anyRequest } from './rows/any-request.ts';
import { badJson } from './rows/bad-json.ts';
import { chatRefusals } from './rows/chat-refusals.ts';
import { chatRequests } from './rows/chat-requests.ts';
import { chatResponses } from './rows/chat-responses.ts';
import { chatStreamRows } from './rows/chat-stream.ts';
import { chatTools } from './rows/chat-tools.ts';
import { completionRows } from './rows/completions.ts';
import { decisionAccess } from './rows/decision-access.ts';
import { decisionErrors } from './rows/decision-errors.ts';
import { decisionOrder } from './rows/decision-order.ts';
import { decisionRequests } from './rows/decision-requests.ts';
import { decisionResponses } from './rows/decision-responses.ts';
import { decisionsErrors } from './rows/decisions-errors.ts';
import { decisionsRequests } from './rows/decisions-requests.ts';
import { downloadRows } from './rows/downloads.ts';
import { extractionRows } from './rows/extractions.ts';
import { googleDecisions } from './rows/google-decisions.ts';
import { operationRows } from './rows/operations.ts';
import { policyRows } from './rows/policy.ts';
import { questionsAccess } from './rows/questions-access.ts';
import { questionsResponses } from './rows/questions-responses.ts';
import { rerankRows } from './rows/rerank.ts';
import { responsesRows } from './rows/responses.ts';
import { responsesRefusals } from './rows/responses-refusals.ts';
import { routeRows } from './rows/routes.ts';
import { severalModelsRows } from './rows/several-models.ts';
import { statusRows } from './rows/status.ts';
import { systemOneBatch } from './rows/systemone-batch.ts';
import { systemOneErrors } from './rows/systemone-errors.ts';
import { systemOneRequests } from './rows/systemone-requests.ts';

/** All tables, by name. A new table is added here and nowhere else. */
export const tables: Record<string, readonly Row[]> = {
  'any request': anyRequest,
  routes: routeRows,
  status: statusRows,
  operations: operationRows,
  'several models': severalModelsRows,
  downloads: downloadRows,
  'chat requests': chatRequests,
  'chat responses': chatResponses,
  'chat refusals': chatRefusals,
  'chat streams': chatStreamRows,
  'chat tools': chatTools,
  completions: completionRows,
  responses: responsesRows,
  'responses refusals': responsesRefusals,
  'bad JSON': badJson,
  'decision service: requests': decisionRequests,
  'decision service: responses': decisionResponses,
  'decision service: access': decisionAccess,
  'decision service: order of checks': decisionOrder,
  'decision service: errors': decisionErrors,
  'decisions: requests': decisionsRequests,
  'decisions: errors': decisionsErrors,
  'system one: requests': systemOneRequests,
  'system one: errors': systemOneErrors,
  'system one: many states': systemOneBatch,
  'decision formats: responses': questionsResponses,
  'decision formats: access': questionsAccess,
  extractions: extractionRows,
  ranking: rerankRows,
  policy: policyRows,
  "Google's and OpenRouter's decisions": googleDecisions,
};
