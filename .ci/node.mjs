// node .ci/node.mjs image|oldest: prints the path of the Node that the image runs, or of the oldest one that package.json allows.
import { imageNode, oldestNode } from '../test/support/fetched.mjs';

const which = { image: imageNode, oldest: oldestNode }[process.argv[2]];
if (which === undefined) throw new Error('usage: node .ci/node.mjs image|oldest');
console.log(await which());
