/** What health checks answer, for the OpenAPI document. */
import { constant, type Description, object, oneOf, ref } from '../openapi/schema.js';

function status(value: string, description: string): object {
  return { schema: object({ status: constant(value, description) }) };
}

const closing = { schema: ref('Problem') };

export const healthDescription: Description = {
  operationId: 'healthz',
  summary: 'Check that the process is alive',
  tags: ['Operations'],
  response: {
    200: { description: 'It is.', content: { 'application/json': status('ok', 'The process is alive.') } },
  },
  problems: ['forbidden', 'closing'],
};

export const readyDescription: Description = {
  operationId: 'readyz',
  summary: 'Check that the store answers',
  tags: ['Operations'],
  response: {
    200: {
      description: 'It does.',
      content: { 'application/json': status('ready', 'Requests can be sent.') },
    },
    503: {
      description: 'The store does not answer, or the service is draining or closing.',
      content: {
        'application/json': {
          schema: object({
            status: oneOf(
              ['store-unavailable', 'draining'],
              'The store does not answer, or the service is about to close.',
            ),
          }),
        },
        'application/problem+json': closing,
      },
    },
  },
  problems: ['forbidden'],
};
