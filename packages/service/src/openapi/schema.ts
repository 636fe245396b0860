/**
 * Words for route schemas. A route's schema validates requests, writes answers and becomes the OpenAPI document; a schema
 * that is used in more than one place has a name, and is a component of the document under that name.
 */
import type { FastifySchema } from 'fastify';
import type { ProblemCode } from '../http/problem.js';

declare module 'fastify' {
  interface FastifySchema {
    /** Name of the operation. A route without one is not in the document. */
    operationId?: string;
    summary?: string;
    description?: string;
    tags?: readonly Tag[];
    /** Codes of the problems that this route answers with. */
    problems?: readonly ProblemCode[];
  }
}

/** Sections of the document, in this order. */
export const TAGS = {
  Locks: 'Acquire, renew, release and look at locks.',
  Events: 'Changes of locks, as server-sent events.',
  History: 'Ended holds, as far as this service saw them.',
  'Store protocol': 'Used by the `httpStore` of the library. Other clients do not need it.',
  v1: 'The API of LockServiceCentral, for its clients. Both APIs work on the same locks.',
  Operations: 'Health checks and metrics.',
} as const;

export type Tag = keyof typeof TAGS;

export type Schema = Readonly<Record<string, unknown>>;
type Members = Readonly<Record<string, Schema>>;

/** The description of a documented route. */
export interface Description extends FastifySchema {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly [Tag];
}

/** A schema with a name: a component of the document. `app.addSchema` adds it for the routes. */
export function named<T extends Schema>(name: string, schema: T): T & { readonly $id: string } {
  return { $id: name, ...schema };
}

export function ref(name: string, description?: string): Schema {
  return { $ref: `${name}#`, ...(description === undefined ? {} : { description }) };
}

/** Every member is required, except for the optional ones. */
export function object(properties: Members, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties };
}

/** An object of a request: other members are refused. */
export function closed(properties: Members, optional: readonly string[] = []): Schema {
  return { ...object(properties, optional), additionalProperties: false };
}

export function text(description: string, more: Schema = {}): Schema {
  return { type: 'string', ...more, description };
}

export function flag(description: string): Schema {
  return { type: 'boolean', description };
}

/** A number of things: never above 2³¹ - 1. */
export function count(description: string, more: Schema = {}): Schema {
  return { type: 'integer', format: 'int32', minimum: 0, ...more, description };
}

/** Tokens, times and durations: above 2³¹ - 1, and at most 2⁵³ - 1, so that JavaScript can hold them. */
export function large(description: string, more: Schema = {}): Schema {
  return { type: 'integer', format: 'int64', ...more, description };
}

export function time(description: string): Schema {
  return large(`${description} Milliseconds since 1970, by the store's clock.`);
}

export function constant(value: string | boolean, description: string): Schema {
  return { type: typeof value, const: value, description };
}

/** A value of this type, or null for no value. */
export function orNull(type: string, description: string, more: Schema = {}): Schema {
  return { type: [type, 'null'], ...more, description };
}

export function list(items: Schema, description?: string): Schema {
  return { type: 'array', items, ...(description !== undefined && { description }) };
}

export function oneOf(values: readonly string[], description: string): Schema {
  return { type: 'string', enum: values, description };
}

/** An answer that stays open. `event` names the schema of one event. */
export function eventStream(event: string, description: string): Schema {
  const contentSchema = list(ref(event));
  const schema = { type: 'string', contentMediaType: 'text/event-stream', contentSchema };
  return { description, content: { 'text/event-stream': { schema } } };
}
