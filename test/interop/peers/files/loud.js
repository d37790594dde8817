console.log('1 + 1');
