import { expect, test } from 'vitest';
import { validate } from '../validation/validate.ts';
import { DecisionsRequest } from './decisions-request.ts';
import { SystemOneRequest } from './systemone-request.ts';

const asked = '{"type":"noul","instructions":"Paid?"}';
const systemOne = (state: string, question = asked) => `{"model":"a/b","state":${state},"questions":{"a":${question}}}`;
const inData = (data: string) =>
  `{"model":"a/b","input":[{"role":"user","content":[{"type":"input_json","data":${data}}]}],
    "questions":[{"type":"predicate","instructions":"Paid?"}]}`;

test.each([
  [SystemOneRequest, systemOne('{"total":1e400}'), 'state.total'],
  [SystemOneRequest, systemOne('{"lines":[{"qty":1},{"qty":-1e400}]}'), 'state.lines[1].qty'],
  [SystemOneRequest, systemOne('[[1,1e999]]'), 'state[0][1]'],
  [SystemOneRequest, systemOne('""', '{"type":"noul","instructions":[1e400]}'), 'questions.a.instructions[0]'],
  [
    SystemOneRequest,
    systemOne('""', '{"type":"score","criteria":["low",{"from":1e400}]}'),
    'questions.a.criteria[1].from',
  ],
  [DecisionsRequest, inData('{"n":1e400}'), 'input[0].content[0].data.n'],
  [DecisionsRequest, inData('[{"n":1},{"n":1e400}]'), 'input[0].content[0].data[1].n'],
  [SystemOneRequest, systemOne('{"total":1e308}'), null],
  [DecisionsRequest, inData('{"n":-1.5}'), null],
])('%#', (schema, text, param) => {
  const check = () => validate(schema, JSON.parse(text));
  if (param === null) expect(check()).toBeDefined();
  else expect(check).toThrow(expect.objectContaining({ code: 'invalid_value', param }));
});
