/**
 * Nest: a count that loses nothing, from however many instances. `@Locked` of nest-module.ts runs the method under the
 * lock of its name; other names do not wait for it. Adds one to each file it is given: `node nest.js visits visits sales`.
 *
 * For a fleet: HOLDFAST_STORE=redis://… instead of a file of one machine, and your database instead of files.
 * With HTTP it is `NestFactory.create(App)`, `app.enableShutdownHooks()` and `app.listen(3000)`.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HoldfastModule, Locked } from './nest-module.js';

@Injectable()
class Counts {
  @Locked((name: string) => `count:${name}`, { wait: '1m' })
  async add(name: string) {
    await writeFile(name, String(1 + Number(await readFile(name, 'utf8'))));
  }
}
@Module({ imports: [HoldfastModule.forRoot()], providers: [Counts] })
class App {}
const app = await NestFactory.createApplicationContext(App);
for (const name of process.argv.slice(2)) await app.get(Counts).add(name);
await app.close();
