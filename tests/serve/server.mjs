// SPDX-License-Identifier: MIT
// The server as its JavaScript tests run it: on a free port of this machine, with fable or with a folder of models.
import {spawn} from 'node:child_process';
import {createRequire} from 'node:module';
import {createInterface} from 'node:readline';

export const packages = createRequire(process.env.INTAGLIO_PACKAGES + '/');

export async function start(...flags) {
  const child = spawn(
      process.env.INTAGLIO_SERVE, flags[0] === '--port' ? flags : ['--port', '0', ...flags],
      {stdio: ['ignore', 'ignore', 'pipe']});
  process.on('exit', () => child.kill('SIGKILL'));
  let port = 0;
  const ended = new Promise(done => child.on('exit', done));
  await new Promise((done, fail) => {
    createInterface({input: child.stderr}).on('line', line => {
      const entry = JSON.parse(line);
      if (entry.event === 'listening') port = entry.port;
      // Models of a folder are loaded when they are asked for.
      if (entry.event === (flags.includes('--models') ? 'listening' : 'ready')) done();
    });
    ended.then(code => fail(new Error('the server ended with ' + code)));
  });
  return {
    port,
    url: 'http://127.0.0.1:' + port,
    kill: () => (child.kill('SIGKILL'), ended),
    stop: () => (child.kill('SIGTERM'), ended)
  };
}

let passed = 0, failed = 0;
const begun = Date.now();
export function check(good, what) {
  good ? ++passed : ++failed;
  if (!good) console.log('FAILED: ' + what);
}
export function end(name) {
  console.log(`${name}: ${passed} passed, ${failed} failed (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
  process.exit(failed ? 1 : 0);
}
