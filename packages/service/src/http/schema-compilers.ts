/**
 * Compiles the schemas of a route with the first request that needs them. Compiling all of them at the start of the
 * service took hundreds of milliseconds, for routes that few clients use.
 */
import ajvCompiler from '@fastify/ajv-compiler';
import stringifyCompiler from '@fastify/fast-json-stringify-compiler';
import type { FastifyServerOptions } from 'fastify';

type Validate = ((data: unknown) => unknown) & { errors?: unknown };
type Serialize = (data: unknown) => string;
type Build<T> = (schemas: unknown, options: unknown) => (route: unknown) => T;
type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>;

// Fastify calls its compilers with fewer arguments than their types have.
const buildValidator = ajvCompiler() as unknown as Build<Validate>;
const buildSerializer = stringifyCompiler() as unknown as Build<Serialize>;

const validators: Build<Validate> = (schemas, options) => {
  const compile = once(() => buildValidator(schemas, options));
  return (route) => {
    let compiled: Validate | null = null;
    const validate: Validate = (data) => {
      compiled ??= compile()(route);
      const result = compiled(data);
      if (result !== true) validate.errors = compiled.errors;
      return result;
    };
    return validate;
  };
};

const serializers: Build<Serialize> = (schemas, options) => {
  const compile = once(() => buildSerializer(schemas, options));
  return (route) => {
    const compiled = once(() => compile()(route));
    return (data) => compiled()(data);
  };
};

export const compilersFactory = {
  buildValidator: validators,
  buildSerializer: serializers,
} as unknown as Compilers;

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
